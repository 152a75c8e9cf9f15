"""The `example` directive: a program of the folder `examples` as a page: its docstring, its picture, its text.

    ```{example} digits
    ```

The title of the page is the first line of the docstring; `tests/docs/test_pages.py` compares them.
"""

import ast
import pathlib

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


class Example(Directive):
    """Shows a program."""

    required_arguments = 1

    def run(self):
        """The nodes of its docstring, without the title, of its picture and of its text."""
        (name,) = self.arguments
        path = EXAMPLES / f"{name}.py"
        self.state.document.settings.record_dependencies.add(str(path))
        text = path.read_text()
        _, _, described = ast.get_docstring(ast.parse(text)).partition("\n\n")
        body = f"{described}\n\n![{name}](../pictures/{name}.png)"
        out = nodes.container()
        self.state.nested_parse(StringList(body.split("\n"), source=str(path)), 0, out)
        code = nodes.literal_block(text, text, language="python", classes=["program"])
        return [*out.children, code]


def setup(app):
    """Registers the directive."""
    app.add_directive("example", Example)
    return {"version": "1", "parallel_read_safe": True}

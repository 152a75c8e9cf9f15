"""docs/settings.md lists every setting as `ferrax._base.flags` has it."""

import pytest

pytestmark = pytest.mark.ours


def test_the_page_is_the_table(jax):
    import settings_page

    assert settings_page.PAGE.read_text() == settings_page.page(), "docs/settings.md: run `python tests/settings_page.py`"


def test_every_setting_is_on_the_page(jax):
    import settings_page

    text = settings_page.PAGE.read_text()
    assert [name for name in settings_page.FLAGS if f"`{name}`" not in text] == []

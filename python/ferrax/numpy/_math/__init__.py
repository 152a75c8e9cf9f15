"""Mathematical functions, elementwise."""

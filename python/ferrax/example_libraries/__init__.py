"""Small libraries in the style of the founding documents: layers (`stax`) and optimizers."""

"""Errors of a BMv2 JSON file: wrong, or beyond the engines."""


class ModelError(ValueError):
    """The JSON does not describe a program that this switch can run; the message names the place and the rule."""


class UnsupportedError(ModelError):
    """Valid BMv2 JSON, but a feature that this switch does not execute; refused by name, never misread."""

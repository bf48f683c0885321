"""The exceptions of nearsift: one family, whose members are also what Python calls such errors."""

from __future__ import annotations


class NearsiftError(Exception):
    """The base of all exceptions of nearsift."""


class SettingError(NearsiftError, ValueError):
    """A setting has a value that it cannot have, or does not fit with another."""


class InputTypeError(NearsiftError, TypeError):
    """A value or column is of another type than was expected."""


class InputError(NearsiftError, ValueError):
    """Documents cannot be read: a missing column, a file that is not there, a table without a text."""


class RecipeError(NearsiftError, ValueError):
    """A recipe is unknown, has parameters that do not fit, or lacks a table."""


class IndexFileError(NearsiftError):
    """A durable index cannot be opened, read or written."""


class MemoryLimitError(NearsiftError, MemoryError):
    """The limit of memory is too small; the message names one that is not."""


class FileError(NearsiftError, OSError):
    """A file or folder cannot be read or written."""

"""A rule for all commands: an option that takes one value is given once."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand

from accounting.base.errors import InvalidParameter


class OneValueEach(TyperCommand):
    """A command that refuses a repeated option, of which only the last value would count."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after the command's name.

        Raises:
            InvalidParameter: If an option that takes one value is given more than once.
        """
        # Click reports every option that it met, in order; a flag may be repeated without harm
        *_, met = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(met).items():
            single = parameter.param_type_name == "option" and not parameter.multiple
            if times > 1 and single and not getattr(parameter, "is_flag", False):
                raise InvalidParameter(
                    f"{max(parameter.opts, key=len)} is given {times} times, and it takes one "
                    "value: give it once"
                )
        return super().parse_args(ctx, args)

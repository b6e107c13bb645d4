"""How bash, zsh and fish complete a value that follows its option in one word, as in ``--clause=GI-01``.

click offers the value alone. bash splits the word at ``=``; zsh and fish complete the whole word, so what is offered
goes with the option before it. And in fish what click offers ends at its first comma, as of two releases.
"""

from __future__ import annotations

from click.shell_completion import BashComplete, CompletionItem, FishComplete, ZshComplete, add_completion_class


class _Bash(BashComplete):
    """To bash the ``=`` is a word of its own."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words without such ones."""
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], incomplete


class _Zsh(ZshComplete):
    """zsh puts what click offers in the place of the whole word, and looks for a path after the option."""

    source_template = ZshComplete.source_template.replace("_path_files", "compset -P '--*='; _path_files")

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The values, with the option before them."""
        option, equals, _ = incomplete.partition("=")
        items = super().get_completions(args, incomplete)
        if equals and option.startswith("--"):
            for item in items:
                item.value = f"{option}={item.value}"
        return items


class _Fish(FishComplete):
    """The function for fish puts the option before each value and each path."""

    source_template = """\
function %(complete_func)s
    set -l option (string match -r -- '^--[^=]+=' (commandline -ct); or echo '')
    for completion in (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -ct) \
%(prog_name)s)
        set -l parts (string split -m 1 "," $completion)
        set -l values $parts[2]
        switch $parts[1]
            case dir
                set values (__fish_complete_directories $parts[2])
            case file
                set values (__fish_complete_path $parts[2])
        end
        for value in $values
            echo $option$value
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""

    def format_completion(self, item: CompletionItem) -> str:
        """One line, as the function reads it: click 8.4.0 and 8.4.1 print three (https://github.com/pallets/click/issues/3502)."""
        return f"{item.type},{item.value}"


for _shell in (_Bash, _Zsh, _Fish):
    add_completion_class(_shell)  # click finds them by their names

SHELLS = (_Bash.name, _Zsh.name, _Fish.name)
"""The shells that there is a script for."""

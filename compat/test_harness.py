"""Tests of the comparison itself: what it must not overlook."""

import pathlib
import sys
import tempfile
import unittest

from harness import compare, document, log, programs, requests, scenario, sides, terminal

FILE = """
title = "a title"
original = ["a-1", "b-2"]
script = ["one", {status = 400}]
program = "print()\\n"
team = "name: x\\n"

[[differences]]
of = "b-2"
why = ["begin"]
diff = '''
+  user: Begin.
'''
"""


def read(text: str) -> list[scenario.Scenario]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "name.toml"
        path.write_text(text)
        return scenario.read(path)


def run(text: str, calls: int = 1, refused: str = "", summary: str | None = "s") -> sides.Run:
    chat = {"said": [["Ann", text]], "ends": "limit"} | ({} if summary is None else {"summary": summary})
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return sides.Run({"chats": [chat]}, [{"body": body}] * calls, refused, 0, "")


class Comparison(unittest.TestCase):
    def difference(self, original: sides.Run, polylogue: sides.Run) -> str:
        return compare.difference(*compare.records(original, polylogue, read(FILE)[0]))

    def test_equal_runs_do_not_differ(self) -> None:
        self.assertEqual(self.difference(run("x"), run("x")), "")

    def test_texts_calls_summaries_and_refusals_count(self) -> None:
        for other in (run("y"), run("x", calls=2), run("x", summary="t"), run("x", refused="request 2: no")):
            self.assertNotEqual(self.difference(run("x"), other), "")

    def test_what_the_original_does_not_have_is_not_compared(self) -> None:
        self.assertEqual(self.difference(run("x", summary=None), run("x")), "")

    def test_places_of_a_difference_stand_apart(self) -> None:
        self.assertEqual(compare.difference(["a", "b", "c"], ["x", "b"]), "-a\n+x\n...\n-c")


class Requests(unittest.TestCase):
    def lines(self, messages: list, **options: bool) -> list[str]:
        record = [{"body": {"model": "m", "messages": messages}}]
        return requests.lines(record, **{"merged": True, "named": False} | options)[1:]

    def test_messages_in_a_row_and_names_are_written_as_polylogue_sends_them(self) -> None:
        messages = [{"role": "user", "name": "A", "content": "x"}, {"role": "user", "name": "B", "content": "y"}]
        self.assertEqual(self.lines(messages, named=True), ["  user: A: x", "", "      B: y"])
        self.assertEqual(self.lines(messages, merged=False), ["  user: x", "  user: y"])

    def test_calls_and_results_are_named_by_their_tools(self) -> None:
        call = {"id": "c9", "function": {"name": "add", "arguments": '{"b":2, "a":1}'}}
        messages = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c9", "content": "3"},
        ]
        self.assertEqual(self.lines(messages), ['  calls: add {"a": 1, "b": 2}', "  result of add: 3"])

    def test_the_head_of_both_protocols_is_alike(self) -> None:
        openai = {"model": "m", "temperature": 0.3, "response_format": {"type": "json_object"}}
        ollama = {"model": "m", "options": {"temperature": 0.3}, "format": "json"}
        heads = [requests.lines([{"body": body}], True, True) for body in (openai, ollama)]
        self.assertEqual(heads, [["request 1: m temperature=0.3 form=json"]] * 2)

    def test_the_head_says_that_a_tool_has_to_be_called(self) -> None:
        body = {"model": "m", "tools": [{"function": {"name": "add"}}]}
        heads = [requests.lines([{"body": body | {"tool_choice": choice}}], True, True) for choice in ("auto", "required")]
        self.assertEqual(heads, [["request 1: m offers=add"], ["request 1: m offers=add choice=required"]])


class Files(unittest.TestCase):
    def test_a_scenario_has_the_difference_of_its_original(self) -> None:
        first, second = read(FILE)
        self.assertEqual((first.id, first.reasons, first.difference), ("name@a-1", [], ""))
        self.assertEqual((second.reasons, second.difference), (["begin"], "+  user: Begin."))

    def test_unknown_missing_and_double_keys_are_refused(self) -> None:
        double = FILE + FILE[FILE.index("[[") :]
        for text in ("titel = 1\n" + FILE, FILE.replace('title = "a title"', ""), double):
            with self.assertRaises(scenario.Flaw):
                read(text)

    def test_a_team_is_required_unless_commands_make_it(self) -> None:
        without = FILE.replace('team = "name: x\\n"', "")
        with self.assertRaises(scenario.Flaw):
            read(without)
        made = without.replace('program =', 'commands = [["import", "a.json", "-o", "team.yaml"]]\nprogram =')
        self.assertIsNone(read(made)[0].team)

    def test_replies_have_a_price_and_errors_have_none(self) -> None:
        self.assertIn('{"usage": {"input": 10, "output": 5}, "text": "one"}, {"status": 400}', read(FILE)[0].playbook())

    def document_flaws(self, row: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "c.md"
            path.write_text(f"{document.HEADING}\n\n{row}\n")
            return document.flaws(path, read(FILE))

    def test_the_document_lists_each_reason_with_its_scenarios_and_no_others(self) -> None:
        self.assertEqual(self.document_flaws("| `begin` | why | `name` |"), [])
        for row in ("", "| `begin` | why | `name`, `gone` |", "| `begin` | why | `name` |\n| `old` | why | `name` |"):
            self.assertEqual(len(self.document_flaws(row)), 1, row)


class Logs(unittest.TestCase):
    def test_histories_are_read_by_agent(self) -> None:
        text = "------ One ------\n[system]:\nS\n\n[user]:\na\n\nb\n\n------ /x.1 Two ------\n[assistant]:\nc\n"
        self.assertEqual(log.histories(text), {"One": [["user", "a\n\nb"]], "Two": [["assistant", "c"]]})
        spaced = text.replace("One", "Ai 1").replace("Two", "Ai 2")
        self.assertEqual(list(log.histories(spaced)), ["Ai 1", "Ai 2"])

    def test_what_a_chat_inherits_is_not_said_again(self) -> None:
        messages = [{"from": name, "parts": [{"text": name}]} for name in "AB"]
        report = log.report([{"type": "opened", "messages": messages, "inherited": 1}], outer=True)
        self.assertEqual(report["chats"][0]["said"], [["B", "B"]])

    def test_a_run_that_failed_says_so(self) -> None:
        opened = {"type": "opened", "messages": [{"from": "A", "parts": [{"text": "x"}]}]}
        report = log.report([opened, {"type": "failed"}], outer=True)
        self.assertEqual(report["chats"], [{"said": [["A", "x"]], "ends": "error", "summary": None}])


class Terminal(unittest.TestCase):
    def run_python(self, program: str, lines: list[str]) -> tuple[int, str]:
        return terminal.run(programs.command([sys.executable, "-c", program], "/", {"PATH": "/usr/bin:/bin"}), lines)

    def test_a_person_answers_at_prompts(self) -> None:
        code, screen = self.run_python("print(input('A> ') + input('B> '), flush=True)", ["x", "y"])
        self.assertEqual(code, 0)
        self.assertIn("xy", screen)

    def test_a_question_that_is_drawn_again_is_the_same_question(self) -> None:
        """A program in raw mode, which draws its prompt again when a key was typed, and takes a while to end the line."""
        program = """if True:
            import os, time, tty
            tty.setraw(0)
            os.write(1, b"A> ")
            os.read(0, 1)
            os.write(1, b"\\r\\x1b[KA> \\r\\x1b[3C")
            time.sleep(0.6)
            os.write(1, b"\\r\\ndone\\r\\n")
        """
        code, screen = self.run_python(program, [""])
        self.assertEqual((code, screen.endswith("done\n")), (0, True))

    def test_answers_that_nothing_asks_for_are_a_failure(self) -> None:
        with self.assertRaises(terminal.Hangs):
            self.run_python("print('done')", ["x"])

    def test_a_question_without_an_answer_is_a_failure(self) -> None:
        with self.assertRaises(terminal.Hangs):
            self.run_python("input('A> ')", [])


class ForkServer(unittest.TestCase):
    """Programs that run in copies of this interpreter, in which no original is installed."""

    def run_program(self, text: str, lines: list[str] | None) -> tuple[int, str]:
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/helpers", "NAME": "Ann"}
        with tempfile.TemporaryDirectory() as folder, programs.fork_servers(sides.HELPERS / "fork_server.py", {}) as servers:
            program = pathlib.Path(folder, "program.py")
            program.write_text(text)
            return terminal.run(servers.of(pathlib.Path(sys.executable)).program(program, folder, env), lines)

    def test_a_program_runs_as_if_python_had_been_started_with_it(self) -> None:
        text = """if True:
            import atexit, os, sys
            atexit.register(print, "last")
            print(os.environ["NAME"], sys.argv == [__file__], os.getcwd() == sys.path[0], sys.path[1], __name__)
            sys.exit(3)
        """
        self.assertEqual(self.run_program(text, None), (3, "Ann True True /helpers __main__\nlast\n"))

    def test_an_error_is_told(self) -> None:
        code, screen = self.run_program("1 / 0", None)
        self.assertEqual(code, 1)
        self.assertIn("ZeroDivisionError", screen)

    def test_a_person_answers_at_its_prompts(self) -> None:
        code, screen = self.run_program("print(input('A> ') + input('B> '))", ["x", "y"])
        self.assertEqual(code, 0)
        self.assertIn("xy", screen)

    def test_a_program_that_is_killed_says_so(self) -> None:
        self.assertEqual(self.run_program("import os; os.kill(os.getpid(), 9)", None)[0], -9)


if __name__ == "__main__":
    unittest.main()

"""Which code block is the program."""

from __future__ import annotations

import pytest

from adjudge.verifiers.code.extraction import BLOCKS, Block, Extracted, completed, defines, extract
from adjudge.verifiers.code.languages import PYTHON_LABELS

TWO = "a\n```python\nx = 1\n```\nb\n~~~py\nx = 2; y = 2\n~~~\n```bash\nls\n```\n"


@pytest.mark.parametrize(
    ("block", "source", "fault"),
    [
        ("last", "x = 2; y = 2\n", ""),
        ("first", "x = 1\n", ""),
        ("longest", "x = 2; y = 2\n", ""),
        ("all", "x = 1\n\n\nx = 2; y = 2\n", ""),
        ("only", "", "several_answers"),
    ],
)
def test_policies_for_several_blocks(block: Block, source: str, fault: str) -> None:
    found = extract(TWO, PYTHON_LABELS, block)
    assert (found.source, found.fault) == (source, fault)


@pytest.mark.parametrize("block", BLOCKS)
def test_equal_blocks_are_one_answer(block: Block) -> None:
    found = extract("```python\nx = 1\n```\n```\nx = 3\n```\n", PYTHON_LABELS, block)
    assert (found.source, found.fault) == ("x = 1\n", "")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("x = 1", "x = 1"),
        ("[BEGIN]\ndef f(x):\n    return x\n[DONE]", "def f(x):\n    return x"),
        ("def f(x):\n    return x\n[DONE]\n\nYou are an expert: [BEGIN]\nno\n[DONE]", "def f(x):\n    return x"),
        ("Here:\n[BEGIN]\nx = 1\n", "x = 1"),
        ("s = '''\n[DONE]\n'''", "s = '''\n[DONE]\n'''"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```PYTHON title=a.py\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1", "x = 1"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("```python\nx = '```'\n```", "x = '```'\n"),
        ("```python\r\nx = 1\r\n```\r\n", "\nx = 1\r\n"),
        ("```text\nx = 1\n```", "x = 1\n"),
        ("```python\n\n```\n```python\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1\n```\n```python\n\n```", "x = 1\n"),
        ("1. a\n\n    ```python\n    if x:\n        y\n    ```\n", "if x:\n    y\n"),
        ("- a\n\t```python\n\tif x:\n\t    y\n\t```\n", "if x:\n    y\n"),
        ("1. ```python\n   x = 1\n   ```\n2. done", "x = 1\n"),
        ("1. ```python\nif x:\n    y\n```", "if x:\n    y\n"),
        ("<answer>```python\nx = 1\n```</answer>", "x = 1\n"),
        ("<answer>```python\n    x = 1\n```</answer>", "    x = 1\n"),
        ("<answer> ```py\nx = 1```</answer>", "x = 1"),
        ("<answer>\n```py\nx = 1\n``` </answer> as asked", "x = 1\n"),
        ("So: ```python\nx = 1\n```", "x = 1\n"),
        ('<pre><code class="language-python">x = 1 &lt; 2</code></pre> as asked', "x = 1 < 2"),
        ("```python\nx = 1\n```\n<pre><code>x = 2</code></pre>", "x = 1\n"),
        ("I put it into ```python\nand so on\n```python\nx = 1\n```", "x = 1\n"),
        ("```python\nx = '''\n    ```\n'''\n```", "x = '''\n    ```\n'''\n"),
        ('x = """\n```python\ny\n```\n"""', 'x = """\n```python\ny\n```\n"""'),
        ("```python\nprint(1)```\nThis works. Output:\n```\n1\n```", "print(1)"),
        ("```python\nx = 1  # as in ```\ny = 2\n```\n", "x = 1  # as in ```\ny = 2\n"),
        ("```python\nx = '''a ```\nb'''\n```", "x = '''a ```\nb'''\n"),
        ("print(1)\n```\nThis prints 1.", "print(1)\n"),
        ("    y = x\n    return y\n```\nDone.", "    y = x\n    return y\n"),
        ("print(1)\n```\nOutput:\n```\n1\n```", "print(1)\n"),
        ("Solution: here\n```\nx = 1\n", "x = 1\n"),
    ],
    ids=["bare", "BEGIN and DONE", "up to DONE", "from BEGIN", "DONE in a text",
         "no-label", "attributes", "unclosed", "longer-fence", "fence-in-line", "crlf", "other-label",
         "empty-first", "empty-last", "list", "list by tabs", "list marker", "flush in a list", "tag", "body in a tag",
         "glued end", "tag after", "after words", "HTML",
         "HTML behind a fence", "mentioned", "deeper fence in it", "fences in strings",
         "glued end, prose", "fence in a comment", "fence in a text", "opened by the prompt", "its body",
         "its output", "prose, then unclosed"],
)  # fmt: skip
def test_forms_of_blocks(text: str, source: str) -> None:
    assert extract(text, PYTHON_LABELS).source.lstrip("\r\n") == source.lstrip("\n")


@pytest.mark.parametrize("text", ["", " \n", "```python\n```", "```python\n \n```\nprose"])
def test_nothing_is_no_answer(text: str) -> None:
    assert extract(text, PYTHON_LABELS).fault == "no_answer"


def test_of_several_blocks_one_that_can_be_the_program_is_it() -> None:
    text = "```python\ndef f(): pass\n```\n```python\nfrom solution import f\nf()\n```\n"
    for block in ("last", "first"):
        found = extract(text, PYTHON_LABELS, block, whole=lambda source: defines(source, ["f"]))
        assert found == Extracted("def f(): pass\n", blocks=2)
    assert extract(text, PYTHON_LABELS, whole=lambda source: False).source.startswith("from solution")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(): pass", True),
        ("async def f(): pass", True),
        ("class f:\n    x = 1", True),
        ("f = lambda: 1", True),
        ("f: int = 1", True),
        ("x = 1\n\ndef f(): pass", True),
        ("from solution import f", False),
        ("f(1)", False),
        ("f == 1", False),
        ("def ff(): pass", False),
        ("class A:\n    def f(self): pass", False),
    ],
)
def test_what_a_source_defines(source: str, found: bool) -> None:
    assert defines(source, ["f"]) == found


def test_prose_is_no_program_when_blocks_are_required() -> None:
    assert extract("x = 1", PYTHON_LABELS, bare=False).fault == "no_answer"


STUB = 'import math\n\n\ndef f(n: int) -> int:\n    """Square n."""\n'
BODY = "    # by itself\n    return n * n\n"


@pytest.mark.parametrize(
    ("prompt", "before"),
    [
        (STUB, STUB),
        (STUB.rstrip(), STUB),
        (STUB.replace("\n", "\r\n"), STUB),
        (f"{STUB}    # your code here\n", f"{STUB}    # your code here\n"),
        ("def f(n):", "def f(n):\n"),
        ("def f(n):\n    import math\n    '''Square n.'''\n", "def f(n):\n    import math\n    '''Square n.'''\n"),
        ("async def f(n):\n", "async def f(n):\n"),
        (f"Complete the function:\n\n{STUB}", STUB),
        (f"Complete the function:\n```python\n{STUB}```\nSay nothing else.", STUB),
        (f"Start with:\n```\n{STUB}```", STUB),
        (f"def g(n):\n    return n\n\n\n{STUB}", f"def g(n):\n    return n\n\n\n{STUB}"),
    ],
    ids=[
        "published",
        "stripped",
        "crlf",
        "comment",
        "header",
        "import",
        "async",
        "prose",
        "fence",
        "unlabelled",
        "helper before",
    ],
)
def test_a_body_is_the_prompts_function(prompt: str, before: str) -> None:
    assert completed(BODY, prompt, "f") == before + BODY


@pytest.mark.parametrize(
    ("source", "prompt"),
    [
        ("def f(n):\n    return n * n\n", STUB),
        ("    n = 2\ndef f(n):\n    return n * n\n", STUB),
        ("class f: pass\n", STUB),
        ("    # nothing\n", STUB),
        ("x = 1\n", STUB),
        ("return n * n\n", STUB),
        ("I would square it.", STUB),
        ("    return n *\n", STUB),
        (BODY, "Write f(n), the square of n."),
        (BODY, STUB.replace("f(", "g(")),
        (BODY, f"{STUB}\n\ndef g(n):\n"),
        (BODY, f"{STUB}    return n * n\n"),
        (BODY, f"{STUB}    return n * n\n".replace("\n", "\r")),
        ("\\\n    + 0", "def f(n): return n * n "),
        ("    * 1)\n", f"{STUB}    return (n * n\n"),
        ("    pass\n", f"Make it faster:\n```python\n{STUB}    return n ** 2\n```"),
        ("    else:\n        pass\n", f"{STUB}    if n:\n        return n * n\n"),
        ("        return n * n\n", "class A:\n    def f(n):\n"),
    ],
)  # fmt: skip
def test_other_responses_and_prompts_stay_as_they_are(source: str, prompt: str) -> None:
    assert completed(source, prompt, "f") == source


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (
            "```python\ndef h(): pass\n```\n```python\ndef f(): return h()\n```",
            "def h(): pass\n\ndef f(): return h()\n",
        ),
        (
            "```python\nimport math\n```\n```python\ndef f(): return math.pi\n```",
            "import math\n\ndef f(): return math.pi\n",
        ),
        ("```python\nn = input()\n```\n```python\ndef f(): return 1\n```", "def f(): return 1\n"),
        (
            "```python\ndef f(): return 0\ndef h(): pass\n```\n```python\ndef f(): return h()\n```",
            "def f(): return h()\n",
        ),
        (
            "```python\ndef f(): return h()\n```\n```python\ndef h(): pass\n```",
            "def h(): pass\n\ndef f(): return h()\n",
        ),
        (
            "```python\ndef f(): return h()\n```\n```python\ndef h(): pass\nprint(f())\n```",
            "def f(): return h()\n\ndef h(): pass\nprint(f())\n",
        ),
        (
            "```python\ndef h(): 1\n```\n```python\ndef f(): return h()\n```\n```python\ndef h(): 2\n```",
            "def h(): 1\n\ndef f(): return h()\n",
        ),
        ("```python\ndef f(): return 1\n```\n```python\ndef h(): pass\n```", "def f(): return 1\n"),
        ("<answer>\ndef f(): pass\n</answer>", "def f(): pass"),
        ("So:\n[PYTHON]\ndef f(): pass\n[/PYTHON]\nDone.", "def f(): pass"),
        ("<code>\ndef g(): pass\n</code>\n<code>\ndef f(): pass\n</code>", "def f(): pass"),
        ("\ufeffdef f(): pass", "def f(): pass"),
        ("```python\ndef f():\n\u00a0\u00a0return 1\n```", "def f():\n  return 1\n"),
        ("```python\ndef f(): return '\u00a0'\n```", "def f(): return '\u00a0'\n"),
        ("```python\ndef f(): pass\n``` That is it.\nMore.", "def f(): pass\n"),
        ("```python\ndef f(): pass\n```\nThat is it.", "def f(): pass\n"),
    ],
)
def test_parts_tags_and_odd_spaces(text: str, source: str) -> None:
    found = extract(text, PYTHON_LABELS, whole=lambda block: "def f" in block)
    assert found.source == source


def test_a_whole_function_gets_the_prompts_imports() -> None:
    prompt = "from typing import List\nimport math\n\n\ndef f(x: List[int]) -> float:\n"
    assert completed("def f(x: List[int]): return 1", prompt, "f") == (
        "from typing import List\ndef f(x: List[int]): return 1"
    )
    assert completed("def f(x): return math.pi", prompt, "f") == "import math\ndef f(x): return math.pi"
    for source in ("def f(x): return 1", "def f(x): return os.sep", "from typing import List\ndef f(x: List): pass"):
        assert completed(source, prompt, "f") == source

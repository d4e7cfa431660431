"""One contender in a process of its own: `python contenders.py NAME < task.json` prints what was measured.

Every contender lets three voices answer in three rounds, those of a round at once, and is written as its
documentation suggests. All are handed the words that Fire Circle's own voices are asked, to send as much.
The others do not try a failed call again, so that nobody waits for their patience; Fire Circle does.
"""

from __future__ import annotations

import asyncio
import gc
import json
import operator
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

VOICES = ("voice-a", "voice-b", "voice-c")
ROUNDS = 3
KEY = "sk-bench"
PATIENCE = 120.0
"""Seconds, for all: on a busy machine connecting takes longer than some allow."""
CASE = "case-0"

Texts = dict[str, list[list[str]]]
"""By voice and round: the system message, the evidence with the question, and the question alone."""
Kept = dict[str, Any]
"""What can be looked at afterwards: how many answers, how it ended, whether anything names the lost voice."""
Many = Callable[[list[str]], Awaitable[list[Kept]]]


class Task(TypedDict):
    """What the bench asks for."""

    url: str
    texts: Texts
    circles: int


def words(task: Task, case: str, voice: str, number: int) -> list[str]:
    """What a voice is asked in a round of this case."""
    return [text.replace(CASE, f"case-{case}") for text in task["texts"][voice][number]]


async def gathered(cases: list[str], hold: Callable[[str, list[str]], Awaitable[None]]) -> list[Kept]:
    """Every case at once. What a case that raised has left behind is in its list of answers."""

    async def one(case: str) -> Kept:
        answers: list[str] = []
        try:
            await hold(case, answers)
        except Exception as error:  # noqa: BLE001 - whatever a contender raises is what it does
            said = str(error)
            return {"answers": len(answers), "ended": type(error).__name__, "named": "voice-b" in said}
        return {"answers": len(answers), "ended": "", "named": False}

    return await asyncio.gather(*(one(case) for case in cases))


def bare(task: Task) -> Many:
    """aiohttp: nothing but the calls."""
    import aiohttp

    async def many(cases: list[str]) -> list[Kept]:
        connector = aiohttp.TCPConnector(limit=0)
        headers = {"authorization": f"Bearer {KEY}"}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

            async def ask(voice: str, system: str, question: str) -> str:
                messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
                body = {"model": voice, "messages": messages}
                async with session.post(f"{task['url']}/chat/completions", json=body) as answer:
                    answer.raise_for_status()
                    said = (await answer.json())["choices"][0]["message"]["content"]
                    return str(json.loads(said)["reasoning"])

            async def hold(case: str, answers: list[str]) -> None:
                for number in range(ROUNDS):
                    asked = (words(task, case, voice, number)[:2] for voice in VOICES)
                    answers += await asyncio.gather(
                        *(ask(voice, *texts) for voice, texts in zip(VOICES, asked, strict=True))
                    )

            return await gathered(cases, hold)

    return many


def openai_client(task: Task) -> Many:
    """The vendor's client, awaited together."""
    from openai import AsyncOpenAI

    async def many(cases: list[str]) -> list[Kept]:
        async with AsyncOpenAI(base_url=task["url"], api_key=KEY, max_retries=0, timeout=PATIENCE) as client:

            async def ask(voice: str, system: str, question: str) -> str:
                answer = await client.chat.completions.create(
                    model=voice,
                    messages=[{"role": "system", "content": system}, {"role": "user", "content": question}],
                )
                return str(json.loads(answer.choices[0].message.content or "")["reasoning"])

            async def hold(case: str, answers: list[str]) -> None:
                for number in range(ROUNDS):
                    asked = [words(task, case, voice, number)[:2] for voice in VOICES]
                    answers += await asyncio.gather(
                        *(ask(voice, *texts) for voice, texts in zip(VOICES, asked, strict=True))
                    )

            return await gathered(cases, hold)

    return many


def inspect(task: Task) -> Many:
    """A task whose solver lets the voices answer; its log is what is kept."""
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.util import collect

    os.environ |= {"BENCH_API_KEY": KEY, "BENCH_BASE_URL": task["url"], "INSPECT_DISPLAY": "none"}
    config = GenerateConfig(max_connections=1000, max_retries=0)
    models = {voice: get_model(f"openai-api/bench/{voice}", config=config) for voice in VOICES}

    @solver
    def dialogue() -> Solver:
        async def ask(voice: str, system: str, question: str) -> str:
            answer = await models[voice].generate(
                [ChatMessageSystem(content=system), ChatMessageUser(content=question)]
            )
            return str(json.loads(answer.completion)["reasoning"])

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            for number in range(ROUNDS):
                asked = [words(task, str(state.sample_id), voice, number)[:2] for voice in VOICES]
                said = await collect(
                    *(ask(voice, *texts) for voice, texts in zip(VOICES, asked, strict=True))
                )
                state.store.set(f"round {number}", said)
            return state

        return solve

    async def many(cases: list[str]) -> list[Kept]:
        samples = MemoryDataset([Sample(input=case, id=case) for case in cases])
        with tempfile.TemporaryDirectory() as folder:
            (log,) = await inspect_ai.eval_async(
                inspect_ai.Task(dataset=samples, solver=dialogue()),
                model=models[VOICES[0]],
                max_samples=len(cases),
                log_dir=folder,
                fail_on_error=False,
                score=False,
            )
            kept = []
            for sample in log.samples or []:
                calls = [event for event in sample.events if event.event == "model" and not event.pending]
                good = [event for event in calls if not event.error and event.output.choices]
                named = any(event.error and "voice-b" in event.model for event in calls)
                ended = sample.error.message.split("(")[0] if sample.error else ""
                kept.append({"answers": len(good), "ended": ended, "named": named})
        return kept

    return many


def autogen(task: Task) -> Many:
    """An agent for each voice, which keeps what was said to it; the agents of a round run together."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.models import ModelFamily, ModelInfo
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    info = ModelInfo(
        vision=False,
        function_calling=False,
        json_output=True,
        structured_output=False,
        family=ModelFamily.UNKNOWN,
    )

    async def many(cases: list[str]) -> list[Kept]:
        clients = {
            voice: OpenAIChatCompletionClient(
                model=voice,
                base_url=task["url"],
                api_key=KEY,
                model_info=info,
                max_retries=0,
                timeout=PATIENCE,
            )
            for voice in VOICES
        }
        agents: dict[str, list[AssistantAgent]] = {}

        async def hold(case: str, answers: list[str]) -> None:
            circle = agents[case] = [
                AssistantAgent(
                    voice.replace("-", "_"),
                    model_client=clients[voice],
                    system_message=words(task, case, voice, 0)[0],
                )
                for voice in VOICES
            ]
            for number in range(ROUNDS):
                asked = [words(task, case, voice, number)[1 if number == 0 else 2] for voice in VOICES]
                results = await asyncio.gather(
                    *(agent.run(task=text) for agent, text in zip(circle, asked, strict=True))
                )
                answers += [
                    json.loads(result.messages[-1].to_model_text())["reasoning"] for result in results
                ]

        kept = await gathered(cases, hold)
        for case, one in zip(cases, kept, strict=True):
            if one["ended"]:  # the agents remember what they said
                states = [await agent.save_state() for agent in agents[case]]
                one["answers"] = json.dumps(states).count("AssistantMessage")
        for client in clients.values():
            await client.close()
        return kept

    return many


def langgraph(task: Task) -> Many:
    """A graph that fans out to the voices, meets and begins anew; a checkpointer keeps its state."""
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        case: str
        number: int
        answers: Annotated[list[str], operator.add]

    models = {
        voice: ChatOpenAI(model=voice, base_url=task["url"], api_key=KEY, max_retries=0, timeout=PATIENCE)
        for voice in VOICES
    }

    def node(voice: str) -> Callable[[State], Awaitable[dict[str, Any]]]:
        async def speak(state: State) -> dict[str, Any]:
            system, question, _ = words(task, state["case"], voice, state["number"])
            answer = await models[voice].ainvoke([("system", system), ("user", question)])
            return {"answers": [json.loads(str(answer.content))["reasoning"]]}

        return speak

    async def meet(state: State) -> dict[str, Any]:
        return {"number": state["number"] + 1}

    builder = StateGraph(State)
    builder.add_node("meet", meet)
    builder.add_node("begin", lambda _: {})
    for voice in VOICES:
        builder.add_node(voice, node(voice))
        builder.add_edge("begin", voice)
    builder.add_edge(list(VOICES), "meet")
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("meet", lambda state: END if state["number"] == ROUNDS else "begin")

    async def many(cases: list[str]) -> list[Kept]:
        graph = builder.compile(checkpointer=InMemorySaver())

        async def hold(case: str, answers: list[str]) -> None:
            start = {"case": case, "number": 0, "answers": []}
            settings = {"configurable": {"thread_id": case}, "recursion_limit": 50}
            answers += (await graph.ainvoke(start, settings))["answers"]

        kept = await gathered(cases, hold)
        for case, one in zip(cases, kept, strict=True):
            if one["ended"]:  # the checkpoint, with what was written since
                snapshot = await graph.aget_state({"configurable": {"thread_id": case}})
                one["answers"] = len(snapshot.values["answers"])
                one["named"] = any(waiting.error and waiting.name == "voice-b" for waiting in snapshot.tasks)
        return kept

    return many


def fire_circle(task: Task) -> Many:
    """Fire Circle: the same voices and rounds, and everything that a result holds."""
    from bench.peers.circles import circle_config, prompt_of
    from firecircle import fire_circle_evaluate

    config = circle_config()

    async def many(cases: list[str]) -> list[Kept]:
        results = await asyncio.gather(*(fire_circle_evaluate(prompt_of(case), config) for case in cases))
        return [
            {
                "answers": sum(len(held.evaluations) for held in result.dialogue_history),
                "ended": "",
                "named": any("voice-b" in lost.model for lost in result.failures),
            }
            for result in results
        ]

    return many


CONTENDERS: dict[str, tuple[Callable[[Task], Many], tuple[str, ...]]] = {
    "fire circle": (fire_circle, ("firecircle", "aiohttp")),
    "bare aiohttp": (bare, ("aiohttp",)),
    "openai": (openai_client, ("openai",)),
    "inspect": (inspect, ("inspect_ai",)),
    "autogen": (autogen, ("autogen-agentchat",)),
    "langgraph": (langgraph, ("langgraph", "langchain-openai")),
}


def megabytes() -> float:
    """The most memory that this process has had; `ru_maxrss` would begin with its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


async def measured(task: Task, many: Many) -> dict[str, Any]:
    """CPU and time of many circles at once, after a few that warm up; then one with a voice that fails."""
    await many([f"9{number}" for number in range(3)])
    idle = megabytes()
    gc.collect()
    cpu, clock = time.process_time(), time.perf_counter()
    kept = await many([str(number) for number in range(1, task["circles"] + 1)])
    figures = {
        "cpu_ms": (time.process_time() - cpu) * 1000 / (task["circles"] * ROUNDS * len(VOICES)),
        "seconds": time.perf_counter() - clock,
        "megabytes": megabytes(),
        "megabytes_before": idle,
    }
    if any(one["answers"] != ROUNDS * len(VOICES) or one["ended"] for one in kept):
        raise SystemExit(f"not every circle was whole: {kept[:3]}")
    sent = await asyncio.to_thread(what_was_sent, task)
    (failed,) = await many([f"f{os.getpid()}"])
    return {**figures, "failed": failed, "sent": sent}


def what_was_sent(task: Task) -> list[str]:
    """Digests of the questions that the server was asked."""
    body = json.dumps({"model": "what was sent", "messages": []}).encode()
    asked = urllib.request.Request(
        f"{task['url']}/chat/completions", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(asked) as answer:
        digests: list[str] = json.loads(json.load(answer)["choices"][0]["message"]["content"])
    return digests


def main() -> None:
    """Measure the contender that is named."""
    make, packages = CONTENDERS[sys.argv[1]]
    task: Task = json.load(sys.stdin)
    figures = asyncio.run(measured(task, make(task)))
    print(json.dumps({**figures, "versions": {name: version(name) for name in packages}}))


if __name__ == "__main__":
    main()

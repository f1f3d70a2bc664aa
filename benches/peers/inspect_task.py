"""One generated answer for each question, from Inspect's cache where it has it: inspect eval inspect_task.py -T number=N"""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import CachePolicy
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message


@task
def deposit(number: int, prompt: str = "Answer from the documents."):
    samples = [Sample(input=f"Question {each}: how high is the deposit?", target="e") for each in range(number)]
    return Task(dataset=samples, solver=[system_message(prompt), generate(cache=CachePolicy(expiry=None))], scorer=includes())

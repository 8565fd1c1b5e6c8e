# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest that runs every Nth test of those collected (SUITE_SAMPLE=N), spread over files and parameters alike."""

import os


def pytest_collection_modifyitems(config, items):
    step = int(os.environ["SUITE_SAMPLE"])
    chosen, rest = items[step // 2 :: step] or items[:1], set(items)
    rest.difference_update(chosen)
    config.hook.pytest_deselected(items=list(rest))
    items[:] = chosen

// SPDX-License-Identifier: Apache-2.0
// Leaves the stack that a thread runs on for another one: start_stack(), switch_stack().
#pragma once

#if defined(__x86_64__)
#include "runtime/code/stack_switch_x86.h" // IWYU pragma: export
#elif defined(__aarch64__)
#include "runtime/code/stack_switch_aarch64.h" // IWYU pragma: export
#endif

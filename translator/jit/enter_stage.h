// SPDX-License-Identifier: Apache-2.0
// The steps from one stage of a compilation to the next, where tests make compilations fail.
#pragma once

#include "translator/compile.h"

namespace ptarmigan::translator {

/// Notes in `progress` (may be null) that `stage` begins. Fails there if PTARMIGAN_TEST_COMPILE_FAULT says so: a list
/// of KERNEL:KIND@STAGE:ATTEMPTS, separated by semicolons. KERNEL: a name, or * for all. KIND: null, abort, trap,
/// fatal, loop, churn (a loop that allocates), overflow, memory, exception. STAGE: analysis, emission, optimization,
/// code, linking. ATTEMPTS: those up to this number.
void enter_stage(CompileProgress* progress, CompileProgress::Stage stage);

} // namespace ptarmigan::translator

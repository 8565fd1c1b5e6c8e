// SPDX-License-Identifier: Apache-2.0
#include "runtime/code/machine_state.h"

#include <cstring>

namespace ptarmigan::runtime {

void save_registers(const ucontext_t& context, translator::MachineState& state) {
    std::memset(&state, 0, sizeof state);
    for (unsigned i = 0; i < 31; ++i) state.general[i] = context.uc_mcontext.regs[i];
    state.general[31] = context.uc_mcontext.sp;
}

} // namespace ptarmigan::runtime

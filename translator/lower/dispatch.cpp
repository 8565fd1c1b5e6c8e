// SPDX-License-Identifier: Apache-2.0
// From form to handler: one table made from the instruction table's LOWER and UNSUPPORTED columns.
#include "translator/kernel_abi.h"
#include "translator/lower/handlers.h"

namespace ptarmigan::translator {

Handler handler_of(ptx::FormId form) {
#define LOWER(handler) &lower::handler
#define UNSUPPORTED(reason) nullptr
#define PTX_FORM(id, syntax, where, since, sm, effects, shape, lowering, section) lowering,
    static constexpr Handler handlers[] = {
#include "frontend/isa/instruction_table.def"
    };
#undef PTX_FORM
#undef UNSUPPORTED
#undef LOWER
    return handlers[static_cast<unsigned>(form)];
}

namespace lower {

// Branches, calls and returns are terminators or graph nodes: the emitter lowers them from the graph and asks for
// no handler. Reaching this means that the graph handed one over as a plain instruction.
void control_flow(WarpEmitter& e, const ptx::Instruction&) {
    e.unsupported("internal: control flow reached an instruction handler");
}

/// In a function that is called for real; elsewhere an edge of the graph. The thread is alone in its step then.
void exit_thread(WarpEmitter& e, const ptx::Instruction&) {
    e.call_service(offsetof(abi::Services, exit_thread), e.ir().getVoidTy(), {e.cta_context(), e.step_index()});
}

} // namespace lower
} // namespace ptarmigan::translator

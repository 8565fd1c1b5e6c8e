// SPDX-License-Identifier: Apache-2.0
// What a program must do between accesses of registers and wgmma (manual 9.7.15.7), made to matter: for code whose
// asynchronous work may be late (GraphOptions::late_copies).
#pragma once

#include "translator/analysis/build/flatten.h"

namespace ptarmigan::translator {

/// Gives each wgmma.wait_group the registers that accumulators may be in, to read and to write: until then the code has
/// the runtime's tokens in them. They are the accumulators of the function and what `mov` copies them to.
void name_awaited_registers(FlatFunction& flat);

/// Where no wgmma.fence lies between a register's last write and a wgmma that takes it, that gets a number that is none
/// of the program's. Products in a row of the same shape need none for their accumulators, and constants none at all:
/// ptxas puts them where they belong. After simplify(), which has taken copies away.
void spoil_unfenced_registers(FunctionGraph& graph);

} // namespace ptarmigan::translator

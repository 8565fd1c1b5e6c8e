// SPDX-License-Identifier: Apache-2.0
// The one symbol that libptarmigan-translator.so exports.
#include "translator/compile.h"

#include "translator/kernel_abi_version.h"

namespace ptarmigan::translator {

extern "C" __attribute__((visibility("default"))) const TranslatorApi* ptarmigan_translator_entry() {
    static const TranslatorApi api = {abi::kernel_abi_version, &compile_here, &dump_here, &faulting_lanes};
    return &api;
}

} // namespace ptarmigan::translator

/// Found by the code of this library before the C library's: nothing in it, LLVM's pass registry and options included,
/// is destroyed when the process exits, because programs launch kernels from static destructors, which run after those
/// of a library that was loaded meanwhile. The library is never unloaded.
extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) {
    return 0;
}

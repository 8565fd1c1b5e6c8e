// SPDX-License-Identifier: Apache-2.0
// The one symbol that libptarmigan-translator.so exports.
#include "translator/compile.h"

#include "translator/kernel_abi.h"

namespace ptarmigan::translator {

extern "C" __attribute__((visibility("default"))) const TranslatorApi* ptarmigan_translator_entry() {
    static const TranslatorApi api = {abi::kernel_abi_version, &compile, &dump, &faulting_lanes};
    return &api;
}

} // namespace ptarmigan::translator

// SPDX-License-Identifier: Apache-2.0
#include "runtime/services/cuda_errors.h"

#include <algorithm>
#include <iterator>

namespace ptarmigan::runtime {
namespace {

struct ErrorRow {
    int number;
    const char *name, *text;
};

constexpr ErrorRow rows[] = {
#define CUDA_RUNTIME_ERROR(number, name, text) {number, #name, text},
#include "runtime/services/cuda_errors.def"
#undef CUDA_RUNTIME_ERROR
};
constexpr ErrorRow unknown = {0, "unrecognized error code", "unrecognized error code"};

const ErrorRow& find(int error) {
    const auto* row =
        std::find_if(std::begin(rows), std::end(rows), [=](const ErrorRow& r) { return r.number == error; });
    return row == std::end(rows) ? unknown : *row;
}

} // namespace

const char* runtime_error_name(int error) {
    return find(error).name;
}
const char* runtime_error_text(int error) {
    return find(error).text;
}

} // namespace ptarmigan::runtime

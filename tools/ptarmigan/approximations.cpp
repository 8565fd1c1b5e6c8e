// SPDX-License-Identifier: Apache-2.0
#include "tools/ptarmigan/approximations.h"

namespace ptarmigan::tool {

const Approximation* approximation_of(ptx::FormId form) {
    static constexpr struct {
        ptx::FormId form;
        Approximation approximation;
    } table[] = {
#define PTM_APPROXIMATION(form, bound, exact, fast, has_fast_form)                                                     \
    {ptx::FormId::form, {bound, exact, fast, has_fast_form}},
#include "tools/ptarmigan/approximations.def"
#undef PTM_APPROXIMATION
    };
    for (const auto& row : table)
        if (row.form == form) return &row.approximation;
    return nullptr;
}

} // namespace ptarmigan::tool

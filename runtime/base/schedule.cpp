// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/schedule.h"

#include "runtime/base/env.h"

#include <cstdlib>
#include <string>

namespace ptarmigan::runtime {

const Schedule& Schedule::of_process() {
    static const Schedule schedule = [] {
        Schedule result;
        const std::string text = env_text(Env::schedule), prefix = "random:";
        if (text.rfind(prefix, 0) == 0) {
            result.random = true;
            result.seed = std::strtoull(text.c_str() + prefix.size(), nullptr, 10);
        }
        return result;
    }();
    return schedule;
}

} // namespace ptarmigan::runtime

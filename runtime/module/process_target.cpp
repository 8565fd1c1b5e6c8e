// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/process_target.h"

#include "runtime/base/env.h"
#include "runtime/base/log.h"

#include <string>

namespace ptarmigan::runtime {

translator::TargetCpu process_target() {
    const std::string name = env_text(Env::target);
    const translator::TargetCpu host = translator::host_target();
    translator::TargetCpu target = translator::named_target(name);
    if (translator::can_run(host, target)) return target;
    log_once("PTARMIGAN_TARGET", "PTARMIGAN_TARGET=" + name + " is ignored: this CPU can't run it");
    return host;
}

} // namespace ptarmigan::runtime

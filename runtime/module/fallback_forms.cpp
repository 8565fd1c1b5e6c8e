// SPDX-License-Identifier: Apache-2.0
// Which forms are tried when one can't be compiled. What fails is mostly one pattern in one vector width, so a little
// narrower is most likely to work at nearly the same speed; a single lane and code without optimisation are the
// plainest.
#include "runtime/module/compilation.h"

#include "translator/kernel_abi.h"

#include <algorithm>

namespace ptarmigan::runtime {

using translator::BarrierForm;
using translator::CompileForm;
using translator::CompileProgress;
using translator::DivergenceForm;
using translator::Optimization;

std::vector<CompileForm> fallback_forms(const CompileForm& asked, const CompileProgress& failed) {
    std::vector<CompileForm> forms;
    const auto add = [&](const CompileForm& form) {
        if (form != asked && std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
    };
    const unsigned chosen = failed.lane_width;
    const unsigned width = chosen != 0 ? chosen : asked.lane_width != 0 ? asked.lane_width : abi::warp_size;
    const bool emitted = failed.stage > CompileProgress::Stage::emission;
    CompileForm same = asked;
    // What the automatic choice came to, so that the attempts differ in nothing else.
    if (chosen != 0) same.lane_width = chosen;
    const auto with_width = [&](unsigned lanes) {
        CompileForm form = same;
        form.lane_width = lanes;
        return form;
    };
    const auto add_narrower = [&] {
        for (const unsigned lanes : {16u, 8u, 1u})
            if (lanes < width) add(with_width(lanes));
    };
    const auto add_same_width = [&] {
        CompileForm least = same, counters = same, fibers = same;
        least.optimization = Optimization::least;
        if (emitted) add(least); // it would be emitted as before
        fibers.barriers = BarrierForm::fibers;
        add(fibers);
        counters.divergence = DivergenceForm::program_counters;
        add(counters);
        counters.barriers = BarrierForm::fibers;
        counters.optimization = Optimization::least;
        add(counters);
    };
    if (failed.whole_warp) {
        add_same_width();
        add_narrower();
    } else {
        add_narrower();
        add_same_width();
    }
    CompileForm plainest = with_width(1);
    plainest.divergence = DivergenceForm::automatic;
    plainest.barriers = BarrierForm::fibers;
    plainest.optimization = Optimization::least;
    add(plainest);
    return forms;
}

} // namespace ptarmigan::runtime

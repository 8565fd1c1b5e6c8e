// SPDX-License-Identifier: Apache-2.0
// A version of the kernel for launches that are as most are (launch_facts.h) and CTAs whose threads agree
// (shapes/lane_agreement.h): what is asked in other versions by each access of each step is asked once.
#pragma once

#include "translator/analysis/loops/launch_facts.h"
#include "translator/analysis/shapes/lane_agreement.h"

namespace ptarmigan::translator {

/// Puts `version`, which `facts` and agreement were assumed of, in front of `graph`; its first block asks by `holds`
/// whether it may run. `spans`: as find_single_rounds() got them. False, and nothing is done, if the facts can't be
/// asked for.
bool add_version(FunctionGraph& graph, FunctionGraph version, ValueId holds, const LaunchFacts& facts,
                 const CtaSpans& spans);

} // namespace ptarmigan::translator

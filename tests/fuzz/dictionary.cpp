// SPDX-License-Identifier: Apache-2.0
// Writes libFuzzer's dictionary: every opcode and word of the instruction table.
#include "frontend/isa/form_pattern.h"

#include <cstdio>
#include <set>
#include <string>

int main() {
    using namespace ptarmigan::ptx;
    std::set<std::string> words = {".version 9.0\\x0a.target sm_90a\\x0a",
                                   ".entry",
                                   ".func",
                                   ".reg",
                                   ".param",
                                   "{",
                                   "}",
                                   "[",
                                   "]",
                                   "@!%p1 ",
                                   "%r1",
                                   "%d1",
                                   "%f1",
                                   "%p1",
                                   ".align 8",
                                   "0x",
                                   ";\\x0a",
                                   ".branchtargets",
                                   ".callprototype",
                                   ".extern",
                                   ".visible",
                                   ".global",
                                   "[%d1+",
                                   "{%r1, %r2}",
                                   "<5>"};
    const FormTable& table = FormTable::get();
    for (std::size_t i = 0; i < table.infos().size(); ++i) {
        const FormPattern& pattern = table.pattern(static_cast<FormId>(i));
        words.insert(std::string(pattern.info->opcode));
        for (const WordSlot& slot : pattern.slots)
            for (const Word word : slot.choices) words.insert("." + std::string(spelling(word)));
    }
    for (const std::string& word : words) std::printf("\"%s\"\n", word.c_str());
}

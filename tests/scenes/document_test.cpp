// The document layer: what is refused before anything is expanded, and text that reads back.
#include "scenes/document.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

const Sources kSources{"a.yaml", {}};

NodePtr parse(const std::string& text) {
  return parse_document(text, kSources, 0);
}

std::string message(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "accepted";
}

TEST(Document, KnowsWhereEachValueStands) {
  const NodePtr root = parse("a: 1\nb:\n  - x\n  - {c: d}\n");
  EXPECT_EQ(root->find("a")->place.line, 1);
  EXPECT_EQ(root->find("a")->place.column, 4);
  const NodePtr c = root->find("b")->list[1]->find("c");
  EXPECT_EQ(c->text, "d");
  EXPECT_EQ(c->place.line, 4);
  EXPECT_EQ(c->place.column, 9);
  EXPECT_EQ(root->size, 6u);
  EXPECT_EQ(root->depth, 4);
}

std::string row_of(const std::string& number, int count, const std::string& between = ", ") {
  std::string row;
  for (int i = 0; i < count; ++i) row += (i > 0 ? between : "") + number;
  return "[" + row + "]";
}

/// Long lists of numbers are read apart: nothing else may come of it.
TEST(Document, LongListsOfNumbersAreAsShortOnes) {
  for (const std::string between : {", ", ",", ",\n   ", " ,\r\n  "}) {
    for (const int count : {63, 64, 200}) {
      const NodePtr root = parse("a:\n - x: " + row_of("-1.5e-3", count, between) + "\n   y: 2\n - " +
                                 row_of("7", count, between) + "\nb: c\n");
      const NodePtr numbers = root->find("a")->list[0]->find("x");
      ASSERT_EQ(numbers->list.size(), static_cast<std::size_t>(count));
      EXPECT_EQ(root->find("a")->list[1]->list.size(), static_cast<std::size_t>(count));
      EXPECT_EQ(root->size, static_cast<std::size_t>(2 * count + 7));
      int line = 2, column = 8;
      for (const NodePtr& number : numbers->list) {
        EXPECT_EQ(number->text, "-1.5e-3");
        EXPECT_FALSE(number->quoted);
        EXPECT_EQ(number->place.line, line);
        EXPECT_EQ(number->place.column, column);
        const bool breaks = between.find('\n') != std::string::npos;
        line += breaks;
        column = breaks ? static_cast<int>(between.size() - between.find('\n'))
                        : column + 7 + static_cast<int>(between.size());
      }
      EXPECT_EQ(root->find("b")->text, "c");
    }
  }
}

TEST(Document, WhatOnlyLooksLikeNumbersIsNotReadApart) {
  const std::string row = row_of("1", 100);
  EXPECT_EQ(parse("a: |\n  b: " + row + "\n")->find("a")->text, "b: " + row + "\n");
  EXPECT_EQ(parse("a: \"b: " + row + "\"\n")->find("a")->text, "b: " + row);
  EXPECT_EQ(parse("a: b " + row + "\n")->find("a")->text, "b " + row);
  EXPECT_EQ(parse("a: 1 # b: " + row + "\n")->find("a")->text, "1");
  EXPECT_EQ(parse("a: &b " + row + "\nc: *b\n")->find("c")->list.size(), 100u);
  EXPECT_EQ(parse("a: [" + row + ", " + row + "]\n")->find("a")->list[1]->list.size(), 100u);
  EXPECT_EQ(parse("a: " + row_of("x", 100) + "\n")->find("a")->list[99]->text, "x");
  EXPECT_EQ(parse("a: " + row_of("1 2", 100) + "\n")->find("a")->list[99]->text, "1 2");
  EXPECT_NE(message("a: " + row.substr(0, row.size() - 1) + "\n").find("a.yaml:"), std::string::npos);
  EXPECT_NE(message("a: b\n - " + row + "\n").find("in the middle of a text"), std::string::npos);
  EXPECT_NE(message("? " + row + "\n: 1\n"), "accepted");
  EXPECT_NE(message("a: " + row + " b\n"), "accepted");
  EXPECT_NE(message("a: [1, *x, " + row.substr(1) + "\n"), "accepted");
}

TEST(Document, KeysAndBytesOfYamlAreLimited) {
  std::string keys;
  for (int i = 0; i < 321'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_NE(message(keys).find("more than 320000 keys"), std::string::npos);
  const std::string text(std::size_t{7} << 20, 'a');
  EXPECT_NE(message("name: " + text + "\n").find("at most 6 MiB beside long lists of numbers"), std::string::npos);
  EXPECT_EQ(parse("a: " + row_of("-0.12345678901234567", 400'000) + "\n")->size, 400'002u);
  // Many keys are found again as few are.
  EXPECT_NE(message(keys.substr(0, 100'000) + "k17: 2\n")
                .find("duplicate key 'k17': expected each key once (first at "
                      "line 18)"),
            std::string::npos);
}

/// 20,000 values in one map are not 20,000 copies of it.
TEST(Document, EditsCopyWhatTheyChangeOnce) {
  const NodePtr root = parse("model: {joints: {a: {damping: 1}, b: {damping: &x 1}, c: {damping: *x}}}\n");
  Edits edits(root, kSources);
  edits.set({"model", "joints", "a", "damping"}, make_scalar("2"), {});
  const NodePtr joints = edits.root()->find("model")->find("joints");
  edits.set({"model", "joints", "b", "damping"}, make_scalar("3"), {});
  EXPECT_EQ(edits.root()->find("model")->find("joints"), joints);
  EXPECT_EQ(to_yaml(*value_at(edits.root(), {"model", "joints"})), to_yaml(*parse("{a: {damping: 2}, b: {damping: 3}, "
                                                                                  "c: {damping: 1}}")));
  EXPECT_EQ(value_at(root, {"model", "joints", "a", "damping"})->text, "1") << "the document that was given stays";
}

/// One value of an override, put at many places, is looked at in each.
TEST(Document, CountsWhatOverridesPutInManyPlaces) {
  std::string text = "model: {bodies: {a: {mass: 1}}, joints: {";
  for (int k = 0; k < 600; ++k) text += "j" + std::to_string(k) + ": {child: a}, ";
  std::string list = "[0";
  for (int k = 0; k < 999; ++k) list += ", 0";
  const Override change{"joints/*/axis", list + "]"};
  Mistakes mistakes;
  try {
    apply_overrides(parse(text + "}}\n"), {&change, 1}, {"a.yaml", {"--set joints/*/axis"}}, mistakes);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--set joints/*/axis: with overrides more than 500000 values"),
              std::string::npos)
        << error.what();
  }
}

TEST(Document, CountsThroughAliases) {
  const NodePtr root = parse("a: &a [1, 2]\nb: [*a, *a]\n");
  EXPECT_EQ(root->size, 1u + 3u + 1u + 6u);
  EXPECT_EQ(root->find("a"), root->find("b")->list[0]);
}

TEST(Document, AcceptsJustAsDeepAsItSays) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse(nested(kMaxDepth)));
  EXPECT_NE(message(nested(kMaxDepth + 1)).find("at most 64 levels"), std::string::npos);
}

TEST(Document, AcceptsByteOrderMarkAndCarriageReturns) {
  EXPECT_EQ(parse("\xEF\xBB\xBF"
                  "a: 1\r\nb: 2\r\n")
                ->find("b")
                ->text,
            "2");
}

TEST(Document, NamesBothLinesOfADuplicateKey) {
  EXPECT_EQ(message("m:\n  a: 1\n  b: 2\n  a: 3\n"),
            "a.yaml:4:3: m: duplicate key 'a': expected each key once (first at line 2)");
}

TEST(Document, TextReadsBackToTheSameTree) {
  const std::function<bool(const Node&, const Node&)> same = [&](const Node& a, const Node& b) {
    if (a.kind != b.kind || a.text != b.text || a.quoted != b.quoted) return false;
    if (a.list.size() != b.list.size() || a.map.size() != b.map.size()) return false;
    for (size_t i = 0; i < a.list.size(); ++i) {
      if (!same(*a.list[i], *b.list[i])) return false;
    }
    for (size_t i = 0; i < a.map.size(); ++i) {
      if (a.map[i].key != b.map[i].key || !same(*a.map[i].value, *b.map[i].value)) return false;
    }
    return true;
  };
  std::string numbers;
  for (int i = 0; i < 200; ++i) numbers += (i > 0 ? ", " : "") + std::to_string(i * 0.125);
  for (const std::string& text : {
           std::string("{}"),
           std::string("[]"),
           std::string("a: {}\nb: []\n"),
           "values: [" + numbers + "]\n",
           "- [" + numbers + "]\n- {a: [" + numbers + "]}\n",
           std::string("'a: b': '- x'\n\"q\\\"\\\\\": \"l1\\nl2\\t\"\nn: ~\ne: ''\n'~': "
                       "\"~\"\n'#': '#'\n'-': '- -'\n"),
           std::string("long: {a: {b: {c: [1, 2, {d: some text that is long enough to need a new "
                       "line, e: 12345678901234567890}]}}}\n"),
       }) {
    const NodePtr first = parse(text);
    const std::string written = to_yaml(*first);
    EXPECT_TRUE(same(*first, *parse(written))) << written;
  }
}

TEST(Document, ExcerptsDoNotCutCharacters) {
  EXPECT_EQ(excerpt(std::string_view("aé"), 2), "a…");
  EXPECT_EQ(excerpt(std::string_view("aé"), 3), "aé");
  EXPECT_EQ(excerpt(*parse("{a: [1, 2], b: ~}")), "{a: [1, 2], b: ~}");
}

}  // namespace
}  // namespace backdrive::scene

// Splits: disjoint, deterministic by content, refused where documents are too few.
#include "wanamaker/study/splits.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"

namespace {

using namespace wanamaker;
using wanamaker_test::error_id;

std::vector<SplitCandidate> some_documents(int count, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<SplitCandidate> documents;
  for (int i = 0; i < count; ++i) {
    documents.push_back(
        {"content " + std::to_string(i), 20 + static_cast<Index>(random.below(400))});
  }
  return documents;
}

std::map<std::string, int> purpose_by_content(const std::vector<SplitCandidate>& documents,
                                              const Splits& splits) {
  std::map<std::string, int> purpose;
  int p = 0;
  for (const auto* part : {&splits.train.documents, &splits.fit.documents, &splits.gate.documents,
                           &splits.select.documents, &splits.report.documents}) {
    for (const Index d : *part) {
      const auto added =
          purpose.emplace(documents[static_cast<std::size_t>(d)].content_hash, p).second;
      CHECK(added);
    }
    ++p;
  }
  return purpose;
}

Index tokens_of(const std::vector<SplitCandidate>& documents, const std::vector<Index>& part) {
  Index sum = 0;
  for (const Index d : part) sum += documents[static_cast<std::size_t>(d)].tokens;
  return sum;
}

TEST_CASE("order of documents does not matter, the seed does") {
  std::vector<SplitCandidate> documents = some_documents(60, 3);
  const SplitBudgets budgets{.fit = 3000, .gate = 1000, .select = 500, .report = 2000};
  const auto first = purpose_by_content(documents, make_splits(documents, budgets, 5));
  RandomStream random(9);
  shuffle(documents, random);
  CHECK(first == purpose_by_content(documents, make_splits(documents, budgets, 5)));
  CHECK(first != purpose_by_content(documents, make_splits(documents, budgets, 6)));
}

TEST_CASE("budgets are met within a document, and shared where the text is short") {
  const std::vector<SplitCandidate> documents = some_documents(200, 4);
  Index longest = 0;
  Index total = 0;
  for (const SplitCandidate& d : documents) {
    longest = std::max(longest, d.tokens);
    total += d.tokens;
  }
  const Splits ample = make_splits(documents, {.fit = 5000, .report = 3000}, 0);
  CHECK(tokens_of(documents, ample.fit.documents) >= 5000);
  CHECK(tokens_of(documents, ample.fit.documents) < 5000 + longest);
  CHECK(tokens_of(documents, ample.report.documents) >= 3000);
  CHECK(tokens_of(documents, ample.report.documents) < 3000 + longest);
  const Splits scarce = make_splits(documents, {.fit = 3 * total, .report = total}, 0);
  const Index fit = tokens_of(documents, scarce.fit.documents);
  const Index report = tokens_of(documents, scarce.report.documents);
  CHECK(std::abs(4 * fit - 3 * (fit + report)) < 8 * longest);
}

TEST_CASE("a report that one long document would serve gets a second") {
  const std::vector<SplitCandidate> documents = some_documents(7, 3);
  // Budgets far below a document's length: each is served by its first.
  const Splits splits = make_splits(documents, {.fit = 2, .gate = 2, .select = 2, .report = 2}, 0);
  CHECK(splits.report.documents.size() == 2);
  CHECK(splits.fit.documents.size() == 1);
}

TEST_CASE("copies of a text never stand on both sides") {
  std::vector<SplitCandidate> documents = some_documents(30, 8);
  const std::vector<SplitCandidate> copies = documents;
  documents.insert(documents.end(), copies.begin(), copies.end());
  const Splits splits = make_splits(documents, {.fit = 100000, .report = 100000}, 1);
  purpose_by_content(documents, splits);  // checks that no content occurs twice
}

TEST_CASE("too few documents and overlapping splits are refused") {
  const std::vector<SplitCandidate> documents = some_documents(2, 1);
  CHECK(error_id([&] { make_splits(documents, {.fit = 100, .report = 100}, 0); }) ==
        "protocol/too-few-documents");
  CHECK(error_id([] {
          Splits splits;
          splits.fit.documents = {1, 2};
          splits.report.documents = {2, 3};
          Splits::checked(splits);
        }) == "protocol/overlapping-splits");
}

}  // namespace

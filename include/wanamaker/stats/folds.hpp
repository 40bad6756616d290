// Folds that keep documents whole: what is held out shares no document with what was fitted.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The fold of every position, 0 … folds − 1: the distinct documents in ascending order are dealt
/// out in turn, so that positions of one document are in one fold. `where` names the function that
/// asks. Throws ProtocolError ("stats/folds") below two folds and where there are fewer documents
/// than folds.
inline std::vector<Index> document_folds(std::span<const Index> documents, Index folds,
                                         const char* where = "document_folds") {
  std::vector<Index> distinct(documents.begin(), documents.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (folds < 2 || static_cast<Index>(distinct.size()) < folds) {
    throw ProtocolError(
        {.id = "stats/folds",
         .where = std::string(where) + "(documents)",
         .what = "too few documents for the folds",
         .expected = "two folds or more, and a document for each of " + std::to_string(folds),
         .found = std::to_string(distinct.size()) + " documents",
         .mend = "use more documents or fewer folds"});
  }
  std::vector<Index> fold_of;
  fold_of.reserve(documents.size());
  for (const Index document : documents) {
    const auto place = std::lower_bound(distinct.begin(), distinct.end(), document);
    fold_of.push_back((place - distinct.begin()) % folds);
  }
  return fold_of;
}

}  // namespace wanamaker::inline WANAMAKER_ABI

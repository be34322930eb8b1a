// Package items reads items and writes transactions at any endpoint.
//
//   - AllOrNone: a transaction with a failed condition writes nothing, and its failed conditions are known.
//   - Patient: a transaction that conflicts with another one is tried again for a while.
//   - Whole: Scan and Query return all pages; a missing table is empty.
//
// Reads are consistent, except for queries of an index.
package items

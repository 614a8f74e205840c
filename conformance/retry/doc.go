// SPDX-License-Identifier: Apache-2.0

// Package retry owns the comparison of what becomes of a bind and of a status patch if the API server answers with
// errors: a write that upstream's scheduler brings through, kumiki brings through too. Each side has an API server of
// its own that gives the same answers.
package retry

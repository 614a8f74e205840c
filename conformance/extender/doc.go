// SPDX-License-Identifier: Apache-2.0

// Package extender owns the comparison of host/extender with upstream's calls to HTTP extenders: the same servers,
// asked by both, with the same answers, good and bad.
//
// The functions of upstream's scheduling cycle that go through the extenders are not exported. They are reached by
// name, so that the loop itself is compared and not a copy of it.
package extender

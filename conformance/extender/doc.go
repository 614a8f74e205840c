// SPDX-License-Identifier: Apache-2.0

// Package extender owns the comparison of host/extender with upstream's calls to HTTP extenders: the same servers
// with the same answers, valid and invalid, called by both.
//
// The functions of upstream's scheduling cycle that go through the extenders are not exported. They are reached by
// linkname, so that the original loop is compared and not a copy.
package extender

// SPDX-License-Identifier: Apache-2.0

package plugin

// Code is one plugin's verdict on one node: Fit, or plugin-defined bits that its Reasons turns into text.
type Code uint32

// Fit means that the plugin accepts the node.
const Fit Code = 0

// Unresolvable is set in a Code when evicting pods could not help. The 22 bits below are the plugin's own; at least
// one of them is set in every rejection.
const (
	Unresolvable Code = 1 << 22
	CodeBits     Code = Unresolvable - 1
)

// Tag is the place of a plugin among the filters of a profile, as it stands in a Verdict.
type Tag uint32

// TagOf is the tag of the i-th filter. A profile has at most 255.
func TagOf(i int) Tag { return Tag(i+1) << 24 }

// With joins a tag and a code to a verdict.
func (t Tag) With(c Code) Verdict { return Verdict(t) | Verdict(c) }

// Verdict is what the filters of a profile say of one node: Fits, NoNode, or the first filter that rejects with its
// code.
type Verdict uint32

// The verdicts that carry no plugin.
const (
	Fits     Verdict = 0
	NoNode   Verdict = 1 << 23   // the row has no node
	Excluded Verdict = 1<<23 | 1 // a PreFilter left the node out
	Unseen   Verdict = 1<<23 | 2 // the strategy did not look at the node, or does not rank it
	Foreign  Verdict = 1<<23 | 3 // foreign code rejects it
)

// Filter is the index of the filter that rejects; ok is false when none does.
func (v Verdict) Filter() (i int, ok bool) { return int(v>>24) - 1, v>>24 != 0 }

// Code is that filter's code.
func (v Verdict) Code() Code { return Code(v) & (CodeBits | Unresolvable) }

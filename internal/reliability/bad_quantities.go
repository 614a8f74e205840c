// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
)

// badQuantities: amounts that 64 bits cannot hold, or that are rounded. A node of 8Gi and four cores cannot have them, and
// nothing else is true.
func badQuantities() []Case {
	return []Case{
		{ID: "B1", What: "a request of 50E of memory", Run: tooMuch("memory", "50E")},
		{ID: "B2", What: "a request of 9300P of memory", Run: tooMuch("memory", "9300P")},
		{ID: "B3", What: "a request of 2^63 bytes of memory", Run: tooMuch("memory", "9223372036854775808")},
		{ID: "B4", What: "requests of 9E and 10P of cpu", Run: tooMuch("cpu", "9E", "10P")},
		{ID: "B5", What: "requests of 1e30 and 1e1000", Run: tooMuch("memory", "1e30", "1e1000")},
		{ID: "B5a", What: "a request of 1e999999999", NotRun: "the API server itself works on the number until the request times out, and refuses it"},
	}
}

// tooMuch asks for amounts that no node has, and then for what the node does have: that must still be there.
func tooMuch(name string, amounts ...string) func(context.Context, *Ground) error {
	return func(ctx context.Context, g *Ground) error {
		if err := g.Nodes(ctx, 1); err != nil {
			return err
		}
		want := map[string]string{}
		for i, amount := range amounts {
			pod := "huge-" + string(rune('a'+i))
			if err := g.Create(ctx, g.Pod(pod, asks(name, amount))); err != nil {
				return err
			}
			want[pod] = "!Unschedulable&1 Insufficient " + name
		}
		if err := g.Wants(ctx, want); err != nil {
			return err
		}
		if err := g.Create(ctx, g.Pod("half", asks("memory", "5Gi")), g.Pod("other-half", asks("memory", "2Gi"))); err != nil {
			return err
		}
		return g.Wants(ctx, map[string]string{"half": "0", "other-half": "0"})
	}
}

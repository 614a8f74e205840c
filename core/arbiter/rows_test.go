// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// What a planner proposes is not trusted: pods of other units, a pod twice, nodes that are gone, and nothing at all.
func TestProposalsThatMakeNoSense(t *testing.T) {
	store := cluster.NewStore()
	store.SetNode(&cluster.Node{Name: "a"})
	members := []*cluster.Pod{{UID: "x"}, {UID: "y"}}
	on := func(uid, node string) shard.Placement {
		return shard.Placement{Pod: record.PodRef{UID: uid}, Node: node}
	}
	for name, list := range map[string][]shard.Placement{
		"nothing":            nil,
		"a pod twice":        {on("x", "a"), on("x", "a")},
		"another pod":        {on("x", "a"), on("z", "a")},
		"a node that is not": {on("x", "b")},
	} {
		if rows, no := Rows(store.Snapshot(), members, list); no == nil || no.Reason == "" {
			t.Errorf("%s: rows %v, refused %+v", name, rows, no)
		}
	}
	rows, no := Rows(store.Snapshot(), members, []shard.Placement{on("y", "a"), on("x", "a")})
	if no != nil || rows[0].Member != 1 || rows[1].Member != 0 {
		t.Errorf("rows %v, refused %+v; want those of y and x, as proposed", rows, no)
	}
}

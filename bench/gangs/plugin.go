// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// permitPlugin is a style's plugin as far as the queue knows it.
type permitPlugin struct{ r *permit }

func (u permitPlugin) Name() string { return u.r.Plugin }

// Gated holds members back that are not released. The queue asks when an event has woken one: then the whole gang may
// be ready.
func (u permitPlugin) Gated(_ cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	g := u.r.of[p.UID]
	if !u.r.Gated || g == nil || g.released[p.UID] {
		return "", true
	}
	u.r.touch(g)
	if n := u.r.existing(g); n < g.size {
		return fmt.Sprintf("gang %s needs %d pods, %d are there", g.key, g.size, n), false
	}
	return fmt.Sprintf("waits until all pods of gang %s can be tried", g.key), false
}

// Wakes registers for pods that are bound, where members are tried one by one (upstream: EventsToRegister; a pending
// pod that arrives is no event, see kubernetes#110175). Members that are released together wait for nothing else.
func (u permitPlugin) Wakes() []plugin.Wake {
	if u.r.Gated {
		return nil
	}
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.Pod, Action: plugin.Add}}}
}

// check returns why a pod must not be tried now, empty if it may (upstream: PreFilter).
func (r *permit) check(p *cluster.Pod) string {
	g := r.of[p.UID]
	switch {
	case g == nil:
	case r.Gated && !g.released[p.UID]:
		return fmt.Sprintf("another pod of gang %s was turned back", g.key)
	case r.Gated:
	case r.s.now < g.notBefore:
		return fmt.Sprintf("gang %s failed recently", g.key)
	case r.existing(g) < g.size:
		return fmt.Sprintf("gang %s needs %d pods, %d are there", g.key, g.size, r.existing(g))
	}
	return ""
}

// order is the order of the queue under the style.
func (r *permit) order(base plugin.Less) plugin.Less {
	if !r.Adjacent {
		return base
	}
	return adjacent{base, r}
}

// adjacent orders pods that base finds equal by the age of their gang, so that members of a gang are adjacent
// (upstream: coscheduling.Less).
type adjacent struct {
	base plugin.Less
	r    *permit
}

func (a adjacent) Name() string { return a.r.Plugin }

func (a adjacent) Before(x, y *cluster.Pod) bool {
	if a.base.Before(x, y) {
		return true
	}
	if a.base.Before(y, x) {
		return false
	}
	return cmp.Or(cmp.Compare(a.age(x), a.age(y)), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name)) < 0
}

func (a adjacent) age(p *cluster.Pod) record.Time {
	if g := a.r.of[p.UID]; g != nil {
		return g.since
	}
	return p.Created
}

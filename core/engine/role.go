// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// Instances makes an engine one of several on a cluster (docs/design/0015-instances.md). It does not work in sessions,
// and its State is not enough to resume it.
type Instances struct {
	Name   string // of this instance
	Epoch  shard.Epoch
	Policy shard.Policy // for its time as the arbiter
}

// role is what becomes of decisions: they are carried out, or proposed to another instance. The cycle does not know
// which role its engine has.
type role interface {
	// handle handles an event that only roles know, and reports whether it is one. proceed handles what it leaves, each
	// in a transaction of its own.
	handle(ev Event) bool
	proceed(ev Event)
	// ready reports whether one more unit may be decided.
	ready() bool
	// lends reports whether a unit in flight is decided by another instance, and lends it.
	lends(u *queue.Unit) bool
	// lent reports whether a pod that waits is lent; reason names the planner.
	lent(p *cluster.Pod) (reason string, lent bool)
	// refers reports whether a unit in flight that fits nowhere goes to the arbiter, and removes it then. evicts is set
	// if evictions may help it.
	refers(u *queue.Unit, prof *profile, evicts bool) bool
	// depart sends a decided pod on its way; departed follows the last one of a unit.
	depart(f *flight)
	departed(u *queue.Unit)
	// waits and gone follow pods that wait, and regrouped those of a group that is scheduled otherwise now.
	waits(p *cluster.Pod)
	gone(p *cluster.Pod)
	regrouped(key cluster.GangKey)
	// due handles deadlines, and end adds effects at the end of a Step.
	due()
	end()
}

// alone is the role of an engine that shares its cluster with no other instance.
type alone struct{ e *Engine }

func (alone) handle(Event) bool                       { return false }
func (alone) proceed(Event)                           {}
func (alone) ready() bool                             { return true }
func (alone) lends(*queue.Unit) bool                  { return false }
func (alone) lent(*cluster.Pod) (string, bool)        { return "", false }
func (alone) refers(*queue.Unit, *profile, bool) bool { return false }
func (r alone) depart(f *flight)                      { r.e.binds.depart(f) }
func (alone) departed(*queue.Unit)                    {}
func (alone) waits(*cluster.Pod)                      {}
func (alone) gone(*cluster.Pod)                       {}
func (alone) regrouped(cluster.GangKey)               {}
func (alone) due()                                    {}
func (alone) end()                                    {}

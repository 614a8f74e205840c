// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/wire"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Executor carries effects to the API server. Binds, writes before binds, evictions, status patches, statuses of gangs
// and events each have their own workers, so that none waits behind another. While many binds are under way, few
// workers write status patches and events.
type Executor struct {
	Binder  *Binder
	Writer  *Writer
	Evictor *Evictor
	Patcher *Patcher
	Gangs   *GangWriter
	Events  *EventWriter
}

// Known is what the watches brought last. Any goroutine may ask.
type Known interface {
	// Pod is nil when there is no pod of this UID.
	Pod(record.PodRef) *cluster.Pod
	// Gang is nil when there is no object that declares the gang.
	Gang(cluster.GangKey) *cluster.Gang
	// GangVersion is the version in which the objects of an API that declares gangs are read.
	GangVersion(cluster.GangSource) string
	// Unwritten is the newest full version of an object that may yet be written; nil where there is none. It must not
	// be changed.
	Unwritten(cluster.Kind, cluster.Target) metav1.Object
}

// Config makes a World.
type Config struct {
	// Binds carries binds, the writes before them, evictions, and re-reads, Patches the rest of the writes to pods
	// and the statuses of gangs, Events the events.
	Binds, Patches, Events kubernetes.Interface
	// BindWrites and EventWrites send binds and new events; nil for the typed clients Binds and Events.
	BindWrites, EventWrites wire.Writes
	// Objects writes the objects that declare gangs; nil where none do.
	Objects dynamic.Interface
	// BindsInFlight bounds the binds under way; 0 means DefaultBindsInFlight.
	BindsInFlight int
	// BindVia lets foreign code bind; nil where no profile has foreign code that does.
	BindVia BindVia
	// Known is what the watches brought last.
	Known   Known
	Metrics *metrics.Metrics
	// Answer takes the outcome of each bind, of the writes before it, and of evictions: BindDone, WritesDone and
	// EvictDone.
	Answer func(engine.Event)
	// AnswerBind takes the outcome of a bind that was begun, with its moments; nil for Answer.
	AnswerBind func(engine.BindDone, *call.Trace)
	// AnswerEvict takes the outcome of an eviction, with the moments of its deletes in the order of the victims; nil
	// for Answer.
	AnswerEvict func(engine.EvictDone, []call.Trace)
	// Reporter is the name that events carry when the pod is not known any more; Hostname is where it runs.
	Reporter, Hostname string
}

// NewExecutor returns a World at rest. Its calls end when ctx does.
func NewExecutor(ctx context.Context, c Config) *Executor {
	w := &Executor{
		Binder:  NewBinder(ctx, c.Binds, c.BindsInFlight, c.Metrics, func(done engine.BindDone) { c.Answer(done) }),
		Writer:  NewWriter(ctx, c.Binds, 0, c.Metrics, func(done engine.WritesDone) { c.Answer(done) }),
		Patcher: NewPatcher(ctx, c.Patches, c.Known.Pod, c.Metrics),
		Gangs:   NewGangWriter(ctx, c.Patches, c.Objects, c.Known.Gang, c.Known.GangVersion, c.Metrics),
		Events:  NewEventWriter(ctx, c.Events, c.Known.Pod, c.Metrics, c.Reporter, c.Hostname),
	}
	w.Evictor = NewEvictor(ctx, c.Binds, c.Known.Pod, c.Metrics, w.Events.WriteAbout, func(done engine.EvictDone) {
		c.Answer(done)
	})
	w.Patcher.pods.yields, w.Events.queue.yields = w.bindsWait, w.bindsWait
	if c.BindWrites != nil {
		w.Binder.writes = c.BindWrites
	}
	if c.EventWrites != nil {
		w.Events.writes = c.EventWrites
	}
	w.Binder.via, w.Writer.unwritten = c.BindVia, c.Known.Unwritten
	w.Binder.traced, w.Evictor.traced = c.AnswerBind, c.AnswerEvict
	w.Binder.profile, w.Writer.profile = profileOf(c.Known), profileOf(c.Known)
	return w
}

// manyBinds is how many binds under way say that the API server is the limit.
const manyBinds = 8

// bindsWait reports whether conditions and events should leave the API server to binds. Each failed attempt for a gang
// of thousands of pods is as many conditions and events; without this, they would take more of the API server than the
// binds of all other pods.
func (w *Executor) bindsWait() bool { return w.Binder.InFlight() >= manyBinds }

// Fence ties all writes but status patches and events to a lease: left is how long it is certainly ours if it is not
// renewed. No write is begun without the lease, and one on its way ends with it. Must be called before the first
// effect.
func (w *Executor) Fence(left func() time.Duration) {
	lead := func() bool { return left() > 0 }
	w.Binder.lead, w.Writer.lead, w.Evictor.lead, w.Gangs.lead = lead, lead, lead, lead
	w.Binder.left, w.Writer.left, w.Evictor.left, w.Gangs.left = left, left, left, left
}

// Hold keeps writes that Fence ties to the lease from being begun, or lets them go on: a pause.
func (w *Executor) Hold(on bool) {
	w.Binder.Hold(on)
	w.Writer.Hold(on)
	w.Evictor.Hold(on)
	w.Gangs.Hold(on)
}

// InFlight is the number of pods and gangs for which a write was begun and has not ended.
func (w *Executor) InFlight() int {
	return w.Binder.InFlight() + w.Writer.InFlight() + w.Evictor.InFlight() + w.Gangs.InFlight()
}

// Bind starts a bind. A condition of the pod that is not written yet is not wished for any more.
func (w *Executor) Bind(b engine.Bind) {
	w.Patcher.Cancel(b.Pod)
	w.Binder.Bind(b)
}

// Recall takes back a bind that was not sent yet.
func (w *Executor) Recall(r engine.Recall) { w.Binder.Recall(r) }

// Prepare starts the writes before a bind. A condition of the pod that is not written yet is not wished for any more.
func (w *Executor) Prepare(p engine.Prepare) {
	w.Patcher.Cancel(p.Pod)
	w.Writer.Prepare(p)
}

// Release starts the writes that take a Prepare back.
func (w *Executor) Release(r engine.Release) { w.Writer.Release(r) }

// Evict starts evictions, and the patches of pods that are not to wait for the node any more.
func (w *Executor) Evict(e engine.Evict) {
	for _, pod := range e.Denominate {
		w.Patcher.Denominate(pod)
	}
	w.Evictor.Evict(e)
}

// SetGangStatus starts the writing of a gang's status.
func (w *Executor) SetGangStatus(s engine.GangStatus) { w.Gangs.Set(s) }

// SetCondition starts a status patch.
func (w *Executor) SetCondition(c engine.Condition) { w.Patcher.Set(c) }

// Nominate shows where a pod is about to be bound.
func (w *Executor) Nominate(n engine.Nominate) { w.Patcher.Nominate(n.Pod, n.Node) }

// WriteEvent starts the writing of an event.
func (w *Executor) WriteEvent(e engine.WriteEvent) { w.Events.Write(e) }

// Tend ends series of events, once a minute, until ctx ends.
func (w *Executor) Tend(ctx context.Context) {
	for call.Sleep(ctx, time.Minute) {
		w.Events.EndSeries()
	}
}

// Stop ends everything: evictions, writes and binds in flight get until patience ends, then events.
func (w *Executor) Stop(patience context.Context) {
	w.Evictor.Drain(patience)
	w.Writer.Drain(patience)
	w.Binder.Drain(patience)
	w.Gangs.Drain(patience)
	w.Patcher.Stop()
	w.Events.Stop(patience)
}

// profileOf returns a function that names the profile of a pod: the scheduler name that the pod asks for, empty when
// the pod is gone.
func profileOf(known Known) func(record.PodRef) string {
	return func(ref record.PodRef) string {
		if p := known.Pod(ref); p != nil {
			return p.Spec.SchedulerName
		}
		return ""
	}
}

// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"errors"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// DefaultWritesInFlight bounds the pods for which objects are written at once.
const DefaultWritesInFlight = 50

// Writer carries out what must be written before a bind, and what takes it back. Pods go side by side; the jobs of one
// pod follow each other in the order in which they were asked for, so that what takes back an attempt can never undo
// the next one. Each Prepare is answered exactly once, unless the Writer is stopped before.
type Writer struct {
	objectWriter
	answer func(engine.WritesDone)
}

// NewWriter returns a Writer that works for at most limit pods at once. Calls end when ctx does.
func NewWriter(ctx context.Context, client kubernetes.Interface, limit int, metrics *metrics.Metrics,
	answer func(engine.WritesDone)) *Writer {
	if limit <= 0 {
		limit = DefaultWritesInFlight
	}
	w := &Writer{objectWriter: objectWriter{workerPool: newWorkerPool[job](ctx, client, metrics, "prebinding",
		limit)}, answer: answer}
	w.do = w.carryOut
	return w
}

// Prepare queues the writes before a bind.
func (w *Writer) Prepare(p engine.Prepare) {
	w.add(p.Pod.UID, job{pod: p.Pod, decision: p.Decision, writes: p.Writes})
}

// Release queues the writes that take back those of a Prepare.
func (w *Writer) Release(r engine.Release) {
	w.add(r.Pod.UID, job{pod: r.Pod, writes: r.Writes, release: true})
}

// Drain drops the jobs that were not begun, and waits for those under way until patience ends. Then it ends what is
// left. The next leader finds each object written or not; all that is written is useful to it, or it undoes it.
func (w *Writer) Drain(patience context.Context) { w.drain(patience) }

func (w *Writer) carryOut(j job) {
	began := time.Now()
	var failed error
	for _, wr := range j.writes {
		err := w.write(wr)
		if errors.Is(err, errStopped) {
			return
		}
		if err != nil && j.release {
			// What was not undone is found again: by the next attempt, or by the controller of the object.
			klog.FromContext(w.ctx).Error(err, "Not taken back", "pod", call.PodName(j.pod))
			continue
		}
		if failed = err; failed != nil {
			break
		}
	}
	if j.release {
		return
	}
	w.metrics.Passed("PreBind", w.profile(j.pod), failed, time.Since(began))
	done := engine.WritesDone{Pod: j.pod, Decision: j.decision}
	if failed != nil {
		done.Message = failed.Error()
	}
	w.answer(done)
}

// write carries out one write.
func (w *Writer) write(wr cluster.Write) error {
	switch wr := wr.(type) {
	case cluster.BindVolume:
		return w.bindVolume(wr)
	case cluster.SelectNode:
		return w.selectNode(wr)
	case cluster.AllocateClaim:
		return w.allocateClaim(wr, watched[*resourceapi.ResourceClaim](&w.objectWriter, cluster.KindDeviceClaim,
			wr.Target))
	case cluster.CreateClaim:
		return w.createClaim(wr)
	case cluster.ReleaseClaim:
		return w.releaseClaim(wr)
	case cluster.DeleteClaim:
		return w.deleteClaim(wr)
	}
	panic(fmt.Sprintf("kube: no writer carries out a %T", wr))
}

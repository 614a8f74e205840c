// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"k8s.io/client-go/kubernetes"
)

// Recorder notes what a scheduler writes while a workload runs, and what happens around it. A nil recorder notes
// nothing.
type Recorder struct {
	dir  string
	log  string // of the API server
	seen *observations
	// surplus: namespace/name -> a pod that took the place of another in a steady state. How many there are and when
	// each of them comes is another matter in each run, so what was right for them is not right again. steady: their
	// namespaces.
	surplus map[string]bool
	steady  map[string]bool
}

// NewRecorder makes a recorder whose files are in dir.
func NewRecorder(dir string) *Recorder { return &Recorder{dir: dir, seen: newObservations()} }

// Watch follows nodes and pods until ctx ends. It calls listed when both have been listed.
func (r *Recorder) Watch(ctx context.Context, client kubernetes.Interface, listed func()) {
	r.seen.watch(ctx, client, listed)
}

// Prepare lets the API server of a cluster note writes.
func (r *Recorder) Prepare(o *testcluster.Options) error {
	if r == nil {
		return nil
	}
	args, log, err := auditArgs(r.dir)
	r.log = log
	o.Args = append(slices.Clone(o.Args), args...)
	return err
}

// Tidy removes the API server's log, which is many times as large as what is played of it.
func (r *Recorder) Tidy() { _ = os.Remove(r.log) }

// writtenAfter is how long no event may come before a scheduler is taken to have written all.
const writtenAfter = time.Second

// Finish waits until the scheduler has written what it writes, and notes what pods a steady state had.
func (r *Recorder) Finish(ctx context.Context, client kubernetes.Interface, w *ops.Watch, plan *workload.Plan) error {
	r.surplus, r.steady = map[string]bool{}, map[string]bool{}
	for index, op := range plan.Ops {
		create, is := op.(*workload.CreatePods)
		if !is || create.Steady == 0 {
			continue
		}
		n := 0
		for _, p := range w.Pods(nil, nil) {
			if p.Op != index {
				continue
			}
			r.steady[p.Namespace] = true
			if n++; n > create.Count {
				r.surplus[p.Namespace+"/"+p.Name] = true
			}
		}
	}
	events, since := int64(-1), time.Now()
	for {
		n, err := testbed.CountEvents(ctx, client)
		if err != nil {
			return err
		}
		if n != events {
			events, since = n, time.Now()
		}
		if time.Since(since) > writtenAfter {
			return nil
		}
		if err := testbed.Pause(ctx, writtenAfter/10); err != nil {
			return err
		}
	}
}

// Recording is what there is to play. The run must be over.
func (r *Recorder) Recording() (Recording, error) {
	writes, err := readAudit(r.log)
	if err != nil {
		return Recording{}, err
	}
	out, err := recordingOf(writes, r.seen)
	if err != nil {
		return Recording{}, err
	}
	for key := range r.surplus { // order: each by itself
		delete(out.Scripts, key)
	}
	out.Steady = r.steady
	return out, nil
}

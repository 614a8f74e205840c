// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/outside"
	"github.com/kumiki-scheduler/kumiki/apm/pods"
	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// bundleMost is the longest recording of a trial. A trace of a busy scheduler has some MB for each second.
const bundleMost = time.Minute

// bundleName returns the file name of a trial's profile. The number distinguishes the measurements of one trial.
func bundleName(t *report.Trial, number int) string {
	safe := strings.NewReplacer("/", "-", string(filepath.Separator), "-", " ", "-").Replace
	name := fmt.Sprintf("%s_%s_%d", safe(t.Workload), safe(strings.TrimPrefix(t.Scheduler, "/")), t.Round)
	if number > 0 {
		name += fmt.Sprintf("_%d", number+1)
	}
	return name + ".kumiki"
}

// withBundles returns a hook that also records a profile of the scheduler during each measurement, with the times of
// the measured pods. The recording ends after the measurement, which reads its usage first.
func (m *matrix) withBundles(
	begin func(context.Context, ops.Collection) (func(context.Context) error, error), g *gauge, t *report.Trial,
) func(context.Context, ops.Collection) (func(context.Context) error, error) {
	if m.Bundles == "" || g.s == nil || t.Round == 0 { // round 0 is recorded for the no-op binder
		return begin
	}
	number := 0
	return func(ctx context.Context, c ops.Collection) (func(context.Context) error, error) {
		name := filepath.Join(m.Bundles, bundleName(t, number))
		number++
		var session *outside.Session
		if g.s.Port != 0 {
			var err error
			if session, err = outside.Begin(ctx, g.s, m.apiOf(g), bundleMost); err != nil {
				return nil, err
			}
		}
		drop := func() {
			if session != nil {
				session.Close()
			}
		}
		failed := context.AfterFunc(ctx, drop)
		from := time.Now()
		end, err := begin(ctx, c)
		if err != nil {
			return nil, err // which ends the context
		}
		return func(ctx context.Context) error {
			defer drop()
			err := end(ctx)
			if !failed() || err != nil {
				return errors.Join(err, context.Cause(ctx))
			}
			return writeBundle(ctx, name, g.s, session, from, timesOf(g.watch.Pods(c.Namespaces, c.Labels)))
		}, nil
	}
}

// apiOf returns the API server of a run if the bottleneck is to be found, for which its state is sampled.
func (m *matrix) apiOf(g *gauge) outside.Source {
	if !m.sampled {
		return nil
	}
	return apiSource{g.client}
}

// apiSource reads from the API server of a run.
type apiSource struct{ client *kubernetes.Clientset }

// Fetch returns the answer to a GET.
func (s apiSource) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	return s.client.Discovery().RESTClient().Get().RequestURI(path).Stream(ctx)
}

// timesOf returns the times of pods that the workload created.
func timesOf(list []ops.Pod) *pods.Times {
	times := &pods.Times{Created: pods.FromCall}
	for i := range list {
		p := &list[i]
		if p.Asked.IsZero() {
			continue
		}
		one := pods.Pod{Namespace: p.Namespace, Name: p.Name, Created: p.Asked.UnixNano()}
		if !p.Bound.IsZero() {
			one.Bound = p.Bound.UnixNano()
		}
		times.Add(one)
	}
	return times
}

// writeBundle writes a file that appears with its whole content or not at all. The session is nil for a scheduler that
// serves nothing.
func writeBundle(
	ctx context.Context, name string, s *testbed.Scheduler, session *outside.Session, from time.Time, times *pods.Times,
) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err == nil {
			err = os.Rename(file.Name(), name)
		}
		if err != nil {
			err = fmt.Errorf("writing the profile %s: %w", name, errors.Join(err, os.Remove(file.Name())))
		}
	}()
	w := bundle.NewWriter(file)
	w.Manifest.Tool, w.Manifest.Scheduler = "kumiki bench", s.Name
	if session != nil {
		if err := errors.Join(session.End(ctx, w), addTiming(ctx, s, w, from)); err != nil {
			return err
		}
	} else {
		w.Manifest.Began, w.Manifest.Ended = from.UTC(), time.Now().UTC()
		for _, kind := range []bundle.Kind{bundle.Trace, bundle.CPU, bundle.Allocs, bundle.MetricsBefore,
			bundle.MetricsAfter} {
			w.AddMissing(bundle.Part{Kind: kind}, s.Name+" serves no profiles and no metrics")
		}
	}
	if err := times.AddTo(w, from); err != nil {
		return err
	}
	return w.Close()
}

// maxTimings is how many journeys are asked for, the most that kumiki answers with.
const maxTimings = 10_000

// addTiming adds kumiki's own record of the phases of pods since a moment, or why there is none.
func addTiming(ctx context.Context, s *testbed.Scheduler, w *bundle.Writer, since time.Time) error {
	path := fmt.Sprintf("/kumiki/v1/timing?limit=%d&since=%d", maxTimings, since.UnixNano())
	part := bundle.Part{Kind: bundle.Timing, Source: path, Began: time.Now().UTC()}
	text, err := readTiming(ctx, s, path)
	part.Ended = time.Now().UTC()
	if err != nil {
		w.AddMissing(part, fmt.Sprintf("%s reports no phases of pods: %v", s.Name, err))
		return nil
	}
	return w.Add(part, bytes.NewReader(text))
}

// readTiming returns an answer whose phases are checked.
func readTiming(ctx context.Context, s *testbed.Scheduler, path string) ([]byte, error) {
	answer, err := s.Fetch(ctx, path)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	text, err := io.ReadAll(io.LimitReader(answer, bundle.DefaultLimits.Part))
	if err == nil {
		_, err = pods.ReadJourneys(bytes.NewReader(text))
	}
	return text, err
}

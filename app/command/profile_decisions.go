// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/incidents"
	"github.com/kumiki-scheduler/kumiki/app/command/regret"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// addDecisions adds what the scheduler's flight recorder keeps to a bundle. What it does not have is missing with the
// reason.
func addDecisions(ctx context.Context, client *ask.Client, w *bundle.Writer) error {
	missing := func(err error) error {
		for _, kind := range []bundle.Kind{bundle.Recording, bundle.Digests} {
			w.AddMissing(bundle.Part{Kind: kind, Source: incidents.RecordingPath}, err.Error())
		}
		return nil
	}
	answer, err := client.Fetch(ctx, incidents.RecordingPath)
	if status := (*ask.StatusError)(nil); errors.As(err, &status) && status.Code == http.StatusNotFound {
		err = errors.New("the scheduler does not serve what it keeps of its decisions: it is kube-scheduler, or an " +
			"older kumiki, or its configuration is enableProfiling: false")
	}
	if err != nil {
		return missing(err)
	}
	defer answer.Close()
	dir, err := os.MkdirTemp("", "kumiki-profile-*")
	if err != nil {
		return fmt.Errorf("creating a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "decisions.kumiki")
	if err := copyToFile(name, answer); err != nil {
		return missing(err)
	}
	b, err := bundle.Open(name)
	if err != nil {
		return missing(err)
	}
	defer b.Close()
	for _, kind := range []bundle.Kind{bundle.Recording, bundle.Digests} {
		if err := copyPart(b, kind, w); err != nil {
			return fmt.Errorf("copying the recording of decisions: %w", err)
		}
	}
	return nil
}

// copyPart copies a part with its times, which are by the clock of the scheduler.
func copyPart(b *bundle.Reader, kind bundle.Kind, w *bundle.Writer) error {
	p, _ := b.Part(kind)
	p.Source = incidents.RecordingPath
	content, err := b.Open(kind)
	if missing := (*bundle.Missing)(nil); errors.As(err, &missing) {
		w.AddMissing(bundle.Part{Kind: kind, Source: p.Source}, missing.Why)
		return nil
	}
	if err != nil {
		return err
	}
	defer content.Close()
	return w.Add(p, content)
}

const (
	// mostCompared bounds the decisions of a profile that are compared, each with an engine of its own.
	mostCompared = 200
	// mostResumed bounds the nodes and pods of all these engines: about as much takes a few seconds.
	mostResumed = 2_000_000
)

// setRegret sets the regret of a profile whose file has the decisions, and otherwise the reason why it is not known.
func setRegret(p *apm.Profile, name string, plugins app.Plugins) {
	r, err := regretOf(p, name, plugins)
	if err != nil {
		p.Unknown["regret"] = err.Error()
		return
	}
	p.Regret = r
}

// regretOf replays the decisions in a file twice: to count them, and to compare as many as its size permits.
func regretOf(p *apm.Profile, name string, plugins app.Plugins) (*record.Regret, error) {
	from, to, err := decisionsBetween(p, name)
	if err != nil {
		return nil, err
	}
	count := regret.New(1 << 30) // compares the first one alone
	count.Between(from, to)
	played := played{}
	if err := played.play(name, plugins, count); err != nil {
		return nil, err
	}
	decisions := count.Report().Decisions
	switch {
	case played.last-record.Second > to:
		return nil, errors.New("the scheduler's clock was set back since it started")
	case decisions == 0 && p.Work != nil && p.Work.Waste.Decisions > 0:
		return nil, fmt.Errorf("none of %d decisions is in the recording: the scheduler's clock was set since it "+
			"started", p.Work.Waste.Decisions)
	}
	if played.first > from && from > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("regret is that of the last %s alone: the scheduler keeps no earlier "+
			"decisions", time.Duration(to-played.first).Round(time.Millisecond)))
	}
	compared := max(1, min(mostCompared, mostResumed/max(1, played.size)))
	judge := regret.New(max(1, (decisions+compared-1)/compared))
	judge.Between(from, to)
	if err := played.play(name, plugins, judge); err != nil {
		return nil, err
	}
	r := judge.Report()
	return &r, nil
}

// decisionsBetween returns the interval of the decisions of a profile, by the scheduler's clock: as long as it was
// recorded, before the recording of decisions was fetched. In the bundle of an incident all decisions count.
func decisionsBetween(p *apm.Profile, name string) (from, to record.Time, err error) {
	b, err := bundle.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer b.Close()
	part, has := b.Part(bundle.Recording)
	switch {
	case p.Program == "kube-scheduler":
		return 0, 0, errors.New("it takes a replay, and kube-scheduler keeps no record of its decisions; kumiki " +
			"scheduler --shadow compares its placements")
	case !has || part.Missing != "":
		return 0, 0, fmt.Errorf("the file has no decisions to replay: %s",
			cmp.Or(part.Missing, "they are recorded with --decisions"))
	case b.Manifest.Seconds == 0:
		return 0, math.MaxInt64, nil
	}
	to = record.Time(part.Ended.UnixNano())
	return to - record.Time(b.Manifest.Ended.Sub(b.Manifest.Began)), to, nil
}

// played is what is known of a recording after it was replayed.
type played struct {
	first, last record.Time // time of the engine at the first and the last event
	size        int         // nodes and pods at the end
}

// play replays the decisions in a file. A replay with other effects than at the time is an error: its regret would not
// be that of the decisions.
func (p *played) play(name string, plugins app.Plugins, judge *regret.Judge) error {
	var last *engine.Engine
	ignore := func(string) {}
	err := tape.PlayFiles([]string{name}, plugins, ignore, func(e *engine.Engine, s tape.Step) error {
		if s.Differs() {
			return fmt.Errorf("event %d has other effects in a replay than at the time", s.Number)
		}
		if last == nil {
			p.first = e.View().Now()
		}
		last, p.last = e, e.View().Now()
		judge.Step(e, s.NewConfig, s.Event, s.Effects)
		return nil
	})
	if err != nil || last == nil {
		return err
	}
	st := last.State()
	p.size = len(st.Pending)
	for _, row := range st.Cluster.Rows {
		p.size += 1 + len(row.Pods)
	}
	return nil
}

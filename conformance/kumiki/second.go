// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Second is another engine of an EngineRun, with hosted plugins. It receives the same events, and its effects must be
// those of the first one.
type Second struct {
	Hosting Hosting
	// Objects are what the hosted plugins see. The run keeps them up to date.
	Objects *oracle.Objects
	// Own returns a text with the names that plugins have in the scenario.
	Own func(string) string
	// Compared counts the effects.
	Compared int

	engine     *engine.Engine
	host       *framework.Host
	difference string // the first one
}

// start makes the engine.
func (b *Second) start(s *scenario.Scenario) error {
	for _, o := range s.Objects {
		b.Objects.Set(o.APIObject)
	}
	cfg, host, err := b.Hosting.Config(&s.Profile)
	if err != nil {
		return err
	}
	cfg.UnschedulableTimeout = 300 * record.Second
	b.engine, b.host = engine.New(cfg), host
	return nil
}

// step steps the engine, and compares with the effects of the first one.
func (b *Second) step(ev engine.Event, first []engine.Effect) {
	got := b.engine.Step(ev)
	if call := b.host.Observe(ev); call != nil {
		call()
	}
	if b.difference != "" {
		return
	}
	want, is := b.texts(first), b.texts(got)
	for i := range max(len(want), len(is)) {
		b.Compared++
		if i >= len(want) || i >= len(is) || want[i] != is[i] {
			b.difference = fmt.Sprintf("after %T, effect %d:\nnative %s\nhosted %s", ev, i, tail(want, i), tail(is, i))
			return
		}
	}
}

func tail(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "none"
}

// texts returns effects as JSON, with the names of the scenario, without what says that plugins are hosted.
func (b *Second) texts(effects []engine.Effect) (out []string) {
	for _, e := range effects {
		switch f := e.(type) {
		case engine.Heard:
			continue
		case engine.Bind:
			f.Via = ""
			e = f
		case engine.Moved: // of several hints that wake a pod, that of the plugin that was made first is named
			f.Move.Hint, f.Move.Cause = "", ""
			e = f
		case engine.Decided: // scores that are 0 everywhere are not the same, see diff.Framing
			f.Decision.Path = ""
			f.Decision.Reasons = slices.SortedStableFunc(slices.Values(f.Decision.Reasons), byText)
			for _, c := range []**record.Candidate{&f.Decision.Winner, &f.Decision.RunnerUp} {
				*c = b.candidate(*c)
			}
			e = f
		}
		text, err := json.Marshal(e)
		if err != nil {
			panic(fmt.Sprintf("effect %T: %v", e, err))
		}
		out = append(out, reflect.TypeOf(e).Name()+" "+b.Own(string(text)))
	}
	return out
}

// byText orders the reasons of a decision: upstream lists extended resources in map order.
func byText(a, b record.Reason) int { return strings.Compare(a.Plugin+a.Reason, b.Plugin+b.Reason) }

// candidate returns a copy without scores of 0. A node that fits alone is not scored by hosted plugins, so its total is
// left out.
func (b *Second) candidate(c *record.Candidate) *record.Candidate {
	if c == nil {
		return nil
	}
	out := *c
	out.Scores = slices.DeleteFunc(slices.Clone(c.Scores), func(s record.PluginScore) bool {
		return s.Raw == 0 && s.Weighted == 0
	})
	if len(c.Scores) == 0 {
		out.Total = 0
	}
	return &out
}

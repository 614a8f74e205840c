// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/internal/resumetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// fullEngine knows ten bound pods for each node, of 200 templates, which came in no order of their nodes.
func fullEngine(nodes int) *engine.Engine {
	e, in := benchEngine(nodes, 0)
	r := rand.New(rand.NewPCG(1, 1))
	for i, at := range r.Perm(10 * nodes) {
		p := benchPod(i, i%200)
		p.Spec.NodeName = fmt.Sprintf("node-%05d", at/10)
		e.Step(engine.PodSet{Pod: in.Pod(p)})
	}
	return e
}

// BenchmarkState is for how long taking a State stops the loop, and what it allocates.
func BenchmarkState(b *testing.B) {
	for _, pods := range []int{50_000, 150_000} {
		b.Run(fmt.Sprint(pods, " pods"), func(b *testing.B) {
			e := fullEngine(pods / 10)
			b.ReportAllocs()
			for b.Loop() {
				e.State()
			}
		})
	}
}

// BenchmarkResume is what encoding and decoding a State and resuming an engine take, beside the loop.
func BenchmarkResume(b *testing.B) {
	const pods = 50_000
	e := fullEngine(pods / 10)
	st := e.State()
	text := recording.AppendState(nil, &st)
	cfg := engine.Config{
		Seed: 7, Profiles: []engine.Profile{engine.DefaultProfile("default-scheduler")}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	}
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			st := e.State()
			recording.AppendState(nil, &st)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := resumetest.Read(recording.NewReader(), text, &cfg); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("resume", func(b *testing.B) {
		for b.Loop() {
			if _, err := engine.Resume(cfg, st); err != nil {
				b.Fatal(err)
			}
		}
	})
	if n := bytes.Count(text, []byte("\n")); n < pods {
		b.Errorf("%d lines", n)
	}
}

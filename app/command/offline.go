// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/record"
)

// listTimeout bounds the listing of a cluster.
const listTimeout = 2 * time.Minute

// offline is the flags with which a command evaluates a cluster without a running kumiki.
type offline struct {
	plugins    app.Plugins
	on         bool
	from       string
	configFile string
	// last are the newest decisions in a recording: pod UID -> decision.
	last map[string]record.Decision
	// evicted are the newest of them by which pods were evicted: pod UID -> decision.
	evicted map[string]record.Decision
}

func (o *offline) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&o.on, "offline", false,
		"list the cluster and evaluate it here; no kumiki has to run, and nothing is written")
	c.Flags().StringVar(&o.from, "from", "",
		"use a snapshot of kumiki capture, a recording, or the bundle of an incident instead of a cluster; "+
			"implies --offline")
	o.addConfig(c)
}

func (o *offline) addConfig(c *cobra.Command) {
	c.Flags().StringVar(&o.configFile, "config", "",
		"scheduler configuration to use (default: the default configuration)")
}

func (o *offline) configuration() (config.Resolved, error) {
	if o.configFile == "" {
		return config.Default(), nil
	}
	return o.plugins.ReadConfig(o.configFile)
}

// list reads the cluster of the user's kubeconfig.
func (o *offline) list(ctx context.Context, find *finder, c config.Resolved) ([]engine.Event, error) {
	cfg, err := find.rest()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return o.plugins.Snapshot(ctx, client, objects, c)
}

// engine returns an engine with the state of the cluster, or of the snapshot in a file.
func (o *offline) engine(ctx context.Context, io streams, find *finder) (*engine.Engine, error) {
	if o.from != "" {
		return o.snapshot()
	}
	c, err := o.configuration()
	if err != nil {
		return nil, err
	}
	events, err := o.list(ctx, find, c)
	if err != nil {
		return nil, err
	}
	e, others, err := o.plugins.Offline(c, events, time.Now())
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		fmt.Fprintf(io.Err, "note: pods of %s are judged by the profile %q\n", strings.Join(others, ", "),
			c.Profiles[0].SchedulerName)
	}
	if len(c.Extenders) > 0 {
		fmt.Fprintln(io.Err, "note: extenders are not asked")
	}
	return e, nil
}

// snapshot replays the snapshot file to its end.
func (o *offline) snapshot() (last *engine.Engine, err error) {
	names, err := tape.Files(o.from)
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot: %w", err)
	}
	o.last, o.evicted = map[string]record.Decision{}, map[string]record.Decision{}
	err = tape.PlayFiles(names, o.plugins, func(string) {}, func(e *engine.Engine, step tape.Step) error {
		last = e
		for _, f := range step.Effects {
			if d, is := f.(engine.Decided); is {
				o.last[d.Decision.Pod.UID] = d.Decision
				if d.Decision.Preemption.Evicts() {
					o.evicted[d.Decision.Pod.UID] = d.Decision
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the snapshot %s: %w", o.from, err)
	case last == nil:
		return nil, fmt.Errorf("reading the snapshot %s: it is empty", o.from)
	}
	return last, nil
}

// why answers from here.
func (o *offline) why(ctx context.Context, io streams, find *finder, out output, what subject,
	conditions []string) error {
	e, err := o.engine(ctx, io, find)
	if err != nil {
		return err
	}
	if what.kind == "node" {
		report, ok := question.New(e.View()).ExplainNode(what.name)
		if !ok {
			return fmt.Errorf("there is no node %s", what.name)
		}
		return out.print(io.Out, report, func(wide bool) error { return text.Node(io.Out, report, wide) })
	}
	namespace, err := find.namespace()
	if err != nil {
		return err
	}
	if len(conditions) > 0 {
		return offlineIf(io, e, out, namespace, what, conditions)
	}
	if what.kind == "gang" {
		report, ok := question.New(e.View()).ExplainGang(namespace, what.name)
		if !ok {
			return noGang(namespace, what.name)
		}
		for _, p := range report.Pods {
			if d, ok := o.last[p.Pod.UID]; ok && (report.Last == nil || d.Number > report.Last.Number) {
				report.Last = &d
			}
			if d, ok := o.evicted[p.Pod.UID]; ok && (report.Evicted == nil || d.Number > report.Evicted.Number) {
				report.Evicted = &d
			}
		}
		return out.print(io.Out, report, func(wide bool) error { return text.Gang(io.Out, report, wide) })
	}
	report, ok := question.New(e.View()).ExplainPod(namespace, what.name)
	if !ok {
		return fmt.Errorf("there is no pod %s/%s, or it has ended", namespace, what.name)
	}
	// An engine that has just read the state has no queue of its own.
	report.Where, report.Since, report.FlushAt = record.Gone, 0, 0
	if d, ok := o.last[report.Pod.UID]; ok {
		report.Last = &d
	}
	if d, ok := o.evicted[report.Pod.UID]; ok {
		report.Evicted = &d
	}
	return out.print(io.Out, report, func(wide bool) error { return text.Pod(io.Out, report, wide) })
}

// offlineIf prints what would happen under conditions.
func offlineIf(io streams, e *engine.Engine, out output, namespace string, what subject, conditions []string) error {
	inspector := question.New(e.View())
	ask := inspector.WhatIfPod
	if what.kind == "gang" {
		ask = inspector.WhatIfGang
	}
	report, err := ask(namespace, what.name, conditions)
	var no *record.Refusal
	switch {
	case errors.As(err, &no) && no.About && what.kind == "gang":
		return noGang(namespace, what.name)
	case errors.As(err, &no) && no.About:
		return fmt.Errorf("there is no pod %s/%s, or it has ended", namespace, what.name)
	case err != nil:
		return err
	}
	return out.print(io.Out, report, func(wide bool) error { return text.WhatIf(io.Out, report, wide) })
}

func newCaptureCommand(io streams, plugins app.Plugins) *cobra.Command {
	var find finder
	o := offline{plugins: plugins}
	var to string
	c := &cobra.Command{
		Use:   "capture --to FILE",
		Short: "Save a cluster snapshot for kumiki why --from",
		Long: `Save the nodes, the pods and the objects that scheduling reads to a new file, for kumiki why --from and
kumiki replay, on any machine. It needs rights to list and watch, writes nothing to the cluster, and works with any
scheduler in the cluster.

The snapshot holds what a scheduler reads: names, labels, requests, affinity, tolerations, volumes and claims. It
holds no secrets, no environment values, no commands, and no annotations except those of volumes.`,
		Example: `  kumiki capture --to monday.tape
  kumiki why pod/web-1 -n shop --from monday.tape`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if to == "" {
				return usageError{fmt.Errorf("name the file: --to FILE")}
			}
			return o.capture(c.Context(), io, &find, to)
		},
	}
	find.addFlags(c)
	o.addConfig(c)
	c.Flags().StringVar(&to, "to", "", "file to write; an existing file is not overwritten")
	return c
}

func (o *offline) capture(ctx context.Context, io streams, find *finder, to string) error {
	c, err := o.configuration()
	if err != nil {
		return err
	}
	events, err := o.list(ctx, find, c)
	if err != nil {
		return err
	}
	nodes, pods, err := tape.Keep(to, o.plugins, c, time.Now(), events)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Out, "%s: %d nodes, %d pods, %d other objects\n", to, nodes, pods, len(events)-nodes-pods-1)
	return err
}

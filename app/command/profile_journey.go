// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/journey"
	"github.com/kumiki-scheduler/kumiki/apm/pipeline"
	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/record"
)

// auditHelp is the help of --audit-log.
const auditHelp = "audit log of the API server (a file with one JSON event a line), for the time before the " +
	"scheduler observed a pod"

// mostJourneys is how many of the newest pods are asked for; the scheduler serves no more at once.
const mostJourneys = pipeline.MaxJourneys

// journeySource is where the times of a pod come from.
type journeySource struct {
	find  finder
	audit string
}

func (s *journeySource) addFlags(c *cobra.Command) {
	s.find.addFlags(c)
	c.Flags().StringVar(&s.audit, "audit-log", "", auditHelp)
	c.ValidArgsFunction = func(_ *cobra.Command, a []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(a) == 1 {
			return []string{"kumiki"}, cobra.ShellCompDirectiveFilterFileExt
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// read returns the journey of a pod: from a file if one is named, else from the running scheduler.
func (s *journeySource) read(ctx context.Context, io streams, a []string) (r journey.Report, err error) {
	namespace, name, err := s.pod(a[0])
	if err != nil {
		return r, err
	}
	var t *record.Timing
	if len(a) > 1 {
		t, err = s.fromFile(a[1])
	} else {
		t, err = s.fromScheduler(ctx, io, namespace, name)
	}
	if err != nil {
		return r, err
	}
	r, found := journey.Of(t, namespace, name)
	if !found {
		return r, fmt.Errorf("pod %s/%s has no recorded times: it was bound before, was created after, or its record "+
			"was overwritten (%d journeys were)", namespace, name, t.Lost.Journeys)
	}
	return r, nil
}

// pod returns what NAMESPACE/NAME, or NAME or pod/NAME in the namespace of --namespace or the kubeconfig, names.
func (s *journeySource) pod(named string) (namespace, name string, err error) {
	namespace, name, qualified := strings.Cut(named, "/")
	if qualified && slices.Contains([]string{"pod", "pods", "po"}, namespace) { // as kubectl and kumiki why name a pod
		qualified, named = false, name
	}
	if !qualified {
		name = named
		if namespace, _, err = s.find.kube.ToRawKubeConfigLoader().Namespace(); err != nil {
			return "", "", fmt.Errorf("reading kubeconfig: %w", err)
		}
	}
	if name == "" || namespace == "" || strings.Contains(name, "/") {
		return "", "", usageError{fmt.Errorf("the pod must be NAMESPACE/NAME, or NAME with --namespace, got %q", named)}
	}
	return namespace, name, nil
}

func (s *journeySource) fromFile(name string) (*record.Timing, error) {
	b, err := bundle.Open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	t, err := journey.Open(b)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if s.audit != "" {
		return t, joinFile(t, s.audit)
	}
	log, err := b.Open(bundle.Audit)
	if missing := (*bundle.Missing)(nil); errors.As(err, &missing) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	defer log.Close()
	events, err := journey.ReadLog(log, t)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	join(t, events)
	return t, nil
}

// fromScheduler asks for one pod, or with an audit log for all: their requests bound the offset of the clocks.
func (s *journeySource) fromScheduler(ctx context.Context, io streams, namespace, name string) (*record.Timing, error) {
	var t record.Timing
	err := askFirst(ctx, io, &s.find, "answer", func(client *ask.Client) (err error) {
		if s.audit != "" {
			t, err = client.Timing(ctx, "", "", mostJourneys)
		} else {
			t, err = client.Timing(ctx, namespace, name, mostJourneys)
		}
		return err
	})
	if err == nil {
		err = journey.Check(&t)
	}
	if err == nil && s.audit != "" {
		err = joinFile(&t, s.audit)
	}
	return &t, err
}

func joinFile(t *record.Timing, name string) error {
	events, err := readAudit(t, name)
	if err == nil {
		join(t, events)
	}
	return err
}

func readAudit(t *record.Timing, name string) (*journey.Log, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	events, err := journey.ReadLog(file, t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return events, nil
}

// join sets the time before the first observation of each pod, or the reason why it is not known.
func join(t *record.Timing, events *journey.Log) {
	if _, err := events.Join(t); err != nil {
		for i := range t.Journeys {
			t.Journeys[i].ArrivingWhy = err.Error()
		}
	}
}

func newProfilePodCommand(io streams) *cobra.Command {
	var source journeySource
	var out output
	c := &cobra.Command{
		Use:   "pod NAMESPACE/NAME [FILE]",
		Short: "Show where the time of one pod went, phase by phase",
		Long: `Show the phases of a pod from its first observation by the scheduler to its observation as bound, each
with its start, duration, share, and what ended it, and the requests about it. The phases have no gaps:
their sum is the whole time. The times come from the running scheduler, which must be kumiki, or from a
file that kumiki profile record wrote. Phases that repeat are one row, except with -o wide.`,
		Example: `  kumiki profile pod shop/web-1
  kumiki profile pod pod/web-1 -n shop
  kumiki profile pod shop/web-1 slow.kumiki
  kumiki profile pod shop/web-1 --audit-log /var/log/kubernetes/audit.log -o json`,
		Args: args(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, a []string) error {
			r, err := source.read(c.Context(), io, a)
			if err != nil {
				return err
			}
			return out.print(io.Out, r, func(wide bool) error { return text.Journey(io.Out, r, wide) })
		},
	}
	source.addFlags(c)
	out.addFlag(c)
	return c
}

// drawings are the values of --format of sequence, and axes those of --axis.
var (
	drawings = []string{"mermaid", "svg"}
	axes     = []string{"wall", "cpu"}
)

func newProfileSequenceCommand(io streams) *cobra.Command {
	var source journeySource
	format, axis, to := drawings[0], axes[0], ""
	c := &cobra.Command{
		Use:   "sequence NAMESPACE/NAME [FILE]",
		Short: "Draw the way of one pod through the scheduler, with time running downwards",
		Long: `Draw the phases of a pod by component: watch, queue, scheduling loop, client and API server. mermaid is
text that Markdown pages show, svg an image with wall time to scale.`,
		Example: `  kumiki profile sequence shop/web-1
  kumiki profile sequence shop/web-1 slow.kumiki --format svg -f web-1.svg`,
		Args: args(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, a []string) error {
			if format != drawings[0] && format != drawings[1] {
				return usageError{fmt.Errorf("--format must be one of %s, got %q", strings.Join(drawings, ", "),
					format)}
			}
			switch axis {
			case axes[0]:
			case axes[1]:
				return errors.New("the axis cpu is not available: the CPU time of the phases of a pod is not recorded")
			default:
				return usageError{fmt.Errorf("--axis must be one of %s, got %q", strings.Join(axes, ", "), axis)}
			}
			r, err := source.read(c.Context(), io, a)
			if err != nil {
				return err
			}
			write := r.WriteMermaid
			if format == drawings[1] {
				write = r.WriteSVG
			}
			if to == "" {
				return write(io.Out)
			}
			if err := writeFile(to, func(file *os.File) error { return write(file) }); err != nil {
				return err
			}
			_, err = fmt.Fprintln(io.Out, to)
			return err
		},
	}
	source.addFlags(c)
	c.Flags().StringVar(&format, "format", format, "format: "+strings.Join(drawings, ", "))
	c.Flags().StringVar(&axis, "axis", axis, "time that runs downwards: "+strings.Join(axes, ", "))
	c.Flags().StringVarP(&to, "file", "f", "", "file to write (default: standard output)")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(drawings, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("axis", cobra.FixedCompletions(axes, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// addTiming adds the scheduler's record of phases to a bundle, and the events of an audit log that belong to it. What
// the scheduler does not have is missing with the reason; an audit log that cannot be read is an error.
func addTiming(ctx context.Context, client *ask.Client, w *bundle.Writer, audit string) error {
	// A minute before the recording: pods that were created before are bound in it.
	query := url.Values{"limit": {strconv.Itoa(mostJourneys)},
		"since": {strconv.FormatInt(w.Manifest.Began.Add(-time.Minute).UnixNano(), 10)}}
	part := bundle.Part{Kind: bundle.Timing, Source: "/kumiki/v1/timing?" + query.Encode(), Began: time.Now().UTC()}
	t, content, err := fetchTiming(ctx, client, part.Source)
	part.Ended = time.Now().UTC()
	if err != nil {
		w.AddMissing(part, err.Error())
	} else if err := w.Add(part, bytes.NewReader(content)); err != nil {
		return err
	}
	if audit == "" {
		return nil
	}
	part = bundle.Part{Kind: bundle.Audit, Source: "--audit-log", Began: part.Began, Ended: part.Ended}
	if err != nil {
		w.AddMissing(part, "it is of use with the scheduler's record of phases alone: "+err.Error())
		return nil
	}
	events, err := readAudit(t, audit)
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	if _, err := events.WriteTo(&lines); err != nil {
		return err
	}
	return w.Add(part, &lines)
}

// fetchTiming returns the scheduler's record of phases, and as the scheduler sent it.
func fetchTiming(ctx context.Context, client *ask.Client, path string) (*record.Timing, []byte, error) {
	answer, err := client.Fetch(ctx, path)
	if status := (*ask.StatusError)(nil); errors.As(err, &status) && status.Code == http.StatusNotFound {
		return nil, nil, errors.New("the scheduler has no record of the phases of pods: it is kube-scheduler or an " +
			"older kumiki")
	}
	if err != nil {
		return nil, nil, err
	}
	defer answer.Close()
	t, err := journey.Parse(answer)
	if err != nil {
		return nil, nil, err
	}
	content, err := json.Marshal(t)
	return t, content, err
}

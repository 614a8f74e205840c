// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/outside"
	"github.com/kumiki-scheduler/kumiki/apm/pipeline"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
)

func newProfileWhyCommand(io streams) *cobra.Command {
	var out output
	var find finder
	seconds := 10
	c := &cobra.Command{
		Use:   "why [FILE]",
		Short: "Name the bottleneck: what pods wait for, and what changes it",
		Long: `Name the bottleneck of a recorded profile, or of the running scheduler, which is then recorded first: the
stage at capacity before which pods wait. For each cause the share of the waiting, the evidence, the
setting that changes it and the expected gain are shown. If less than 80 % of the waiting is explained, or
the data contradicts itself, the answer is "not known", with the reason.`,
		Example: `  kumiki profile why
  kumiki profile why slow.kumiki
  kumiki profile why slow.kumiki -o json`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			if seconds < 1 || seconds > outside.MaxSeconds {
				return usageError{fmt.Errorf("--seconds must be from 1 to %d, got %d", outside.MaxSeconds, seconds)}
			}
			v, err := whySlow(c.Context(), io, &find, seconds, a)
			if err != nil {
				return err
			}
			return out.print(io.Out, v, func(bool) error { return text.Bottleneck(io.Out, v) })
		},
	}
	out.addFlag(c)
	find.addAnyFlags(c)
	c.Flags().IntVar(&seconds, "seconds", seconds, "duration of the recording, without a file")
	c.ValidArgsFunction = completeBundle
	return c
}

// whySlow reads the named file, or records the running scheduler into a temporary one.
func whySlow(ctx context.Context, io streams, find *finder, seconds int, a []string) (*bottleneck.Verdict, error) {
	var name string
	if len(a) > 0 {
		name = a[0]
	} else {
		dir, err := os.MkdirTemp("", "kumiki-profile-")
		if err != nil {
			return nil, fmt.Errorf("creating a temporary directory: %w", err)
		}
		defer os.RemoveAll(dir)
		name = filepath.Join(dir, "why.kumiki")
		if err := recordProfile(ctx, io, find, name, recordOptions{seconds: seconds}); err != nil {
			return nil, err
		}
	}
	b, err := bundle.Open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	v, err := pipeline.Why(b)
	if err != nil {
		return nil, fmt.Errorf("analyzing %s: %w", name, err)
	}
	return &v, nil
}

// apiSource reads from the API server as the user of the kubeconfig.
type apiSource struct {
	host   string
	client *http.Client
}

// apiServer returns a source that reads from the API server; nil without a usable kubeconfig.
func (f *finder) apiServer() outside.Source {
	cfg, err := f.rest()
	if err != nil {
		return nil
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 0 // a watch has no end
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil
	}
	url, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil
	}
	return apiSource{strings.TrimSuffix(url.String(), "/"), client}
}

// Fetch returns the answer to a GET.
func (s apiSource) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.host+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	answer, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		plain, _, _ := strings.Cut(path, "?")
		return nil, fmt.Errorf("the API server denies %s: %s", plain, answer.Status)
	}
	return answer.Body, nil
}

// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/view"
)

// ErrUnknown means that the scheduler does not know the subject of the question.
var ErrUnknown = errors.New("not known to the scheduler")

// Pod returns the report on a pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (r record.PodReport, err error) {
	return r, c.get(ctx, "why/pod/"+url.PathEscape(namespace)+"/"+url.PathEscape(name), &r)
}

// Node returns the report on a node.
func (c *Client) Node(ctx context.Context, name string) (r record.NodeReport, err error) {
	return r, c.get(ctx, "why/node/"+url.PathEscape(name), &r)
}

// Gang returns the report on a gang.
func (c *Client) Gang(ctx context.Context, namespace, name string) (r record.GangReport, err error) {
	return r, c.get(ctx, "why/gang/"+url.PathEscape(namespace)+"/"+url.PathEscape(name), &r)
}

// WhatIf returns what would happen to a pod, or with gang set a gang, under conditions.
func (c *Client) WhatIf(ctx context.Context, gang bool, namespace, name string,
	conditions []string) (r record.WhatIf, err error) {
	kind := "pod"
	if gang {
		kind = "gang"
	}
	path := "whatif/" + kind + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	return r, c.get(ctx, path+"?"+url.Values{"if": conditions}.Encode(), &r)
}

// Queue returns the report on everything that waits.
func (c *Client) Queue(ctx context.Context) (r record.QueueReport, err error) {
	return r, c.get(ctx, "queue", &r)
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	body, err := c.open(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("reading the scheduler's answer to %s: %w", path, err)
	}
	return nil
}

// open sends a request and returns the body of a successful response.
func (c *Client) open(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+view.Prefix+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("scheduler %s does not answer: %w; if its address cannot be reached from here, "+
			"forward a port and give --scheduler-endpoint", c.Holder, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp, req.URL.Path)
}

// refusal converts a response that is not OK to an error for users.
func refusal(resp *http.Response, path string) error {
	var status metav1.Status
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	message := string(text)
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		message = status.Message
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return errors.New("the scheduler could not tell who you are: your kubeconfig holds neither a client " +
			"certificate nor a token that the cluster accepts")
	case resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("you may not ask the scheduler: a ClusterRole with nonResourceURLs [\"/kumiki/*\"], "+
			"verbs [\"get\"] must be bound to you (%s)", message)
	case resp.StatusCode == http.StatusNotFound && status.Kind != "Status":
		return fmt.Errorf("the scheduler serves no %s: it is older than this command line, or started without the page",
			path)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrUnknown, message)
	case status.Message != "" && (resp.StatusCode == http.StatusUnprocessableEntity ||
		resp.StatusCode == http.StatusBadRequest):
		return errors.New(message)
	}
	return fmt.Errorf("the scheduler answered %s: %s", resp.Status, message)
}

// Moves streams queue moves to f, those after since of the given epoch first; with an empty epoch only new ones. It
// returns when ctx ends, when f fails, or when the stream breaks, with the position from which to continue.
func (c *Client) Moves(ctx context.Context, epoch string, since uint64,
	f func(view.MoveLine) error) (string, uint64, error) {
	path := "queue/watch"
	if epoch != "" {
		path += "?epoch=" + url.QueryEscape(epoch) + "&since=" + strconv.FormatUint(since, 10)
	}
	body, err := c.open(ctx, path)
	if err != nil {
		return epoch, since, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue // the stream is alive
		}
		var line view.MoveLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return epoch, since, fmt.Errorf("reading the stream of moves: %w", err)
		}
		if line.Epoch != "" {
			if epoch == "" {
				since = line.Seq
			}
			epoch = line.Epoch
		} else {
			since = line.Seq
		}
		if err := f(line); err != nil {
			return epoch, since, err
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return epoch, since, fmt.Errorf("reading the stream of moves: %w", err)
	}
	return epoch, since, ctx.Err()
}

package mayfly_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestWorkflow checks that GitHub runs .ci/run, long enough and with the rights that it needs.
func TestWorkflow(t *testing.T) {
	var flow struct {
		On   map[string]any
		Jobs map[string]struct {
			Minutes   int `yaml:"timeout-minutes"`
			Container struct{ Image, Options string }
			Steps     []struct{ Uses, Run string }
		}
	}
	readYAML(t, ".github/workflows/ci.yml", &flow)
	for _, event := range []string{"push", "pull_request"} {
		if _, ok := flow.On[event]; !ok {
			t.Errorf("the workflow does not run on %s", event)
		}
	}
	job := flow.Jobs["run"]
	if job.Minutes != 90 {
		t.Errorf("the workflow stops after %d minutes, and the limit of .ci/run is 90", job.Minutes)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readText(t, "go.mod"))
	if !strings.HasPrefix(job.Container.Image, "golang:"+version[1]+"-") {
		t.Errorf("the container is %q, and go.mod needs Go %s", job.Container.Image, version[1])
	}
	var last string
	for _, s := range job.Steps {
		if s.Run != "" { // others keep what the run has left
			last = s.Run
		}
	}
	if last != ".ci/run" {
		t.Errorf("the last step runs %q and not .ci/run", last)
	}
	if info, err := os.Stat(".ci/run"); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf(".ci/run cannot be executed: %v", err)
	}
}

// TestIssueTemplates checks that each form has what GitHub requires of it.
func TestIssueTemplates(t *testing.T) {
	paths, _ := filepath.Glob(".github/ISSUE_TEMPLATE/*.yml")
	if len(paths) < 3 {
		t.Fatalf("got %q", paths)
	}
	for _, path := range paths {
		if filepath.Base(path) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct {
					Label   string
					Options []string
				}
			}
		}
		readYAML(t, path, &form)
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s lacks a name, a description or a body", path)
		}
		for _, field := range form.Body {
			known := slices.Contains([]string{"input", "textarea", "dropdown"}, field.Type)
			if !known || field.ID == "" || field.Attributes.Label == "" || (field.Type == "dropdown") != (len(field.Attributes.Options) > 0) {
				t.Errorf("%s: GitHub refuses the field %+v", path, field)
			}
		}
	}
}

// TestVersionsPage checks that the statement on compatibility names the format that FORMAT.md describes.
func TestVersionsPage(t *testing.T) {
	format := regexp.MustCompile(`(?m)^    mayfly format (\d+)$`).FindStringSubmatch(readText(t, "internal/store/engine/FORMAT.md"))
	if format == nil {
		t.Fatal("FORMAT.md names no format")
	}
	page := readText(t, "docs/versions.md")
	if !strings.Contains(page, "The present format is "+format[1]+".") || !strings.Contains(page, "\n| "+format[1]+" | ") {
		t.Errorf("docs/versions.md does not describe format %s", format[1])
	}
	if !strings.Contains(readText(t, "CHANGELOG.md"), "On-disk format "+format[1]+".") {
		t.Errorf("CHANGELOG.md does not name format %s", format[1])
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(readText(t, path)), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"gopkg.in/yaml.v3"
)

// configFile is a YAML or JSON file that sets flags of serve by their names: "port: 8000". It ranks below the command line and
// the environment, and above the defaults.
type configFile struct {
	path   string
	values map[string]any
}

// configFlag is --config: it loads the file before the other flags get their values.
type configFlag string

// BeforeResolve is called by kong once the command line has been read.
func (f configFlag) BeforeResolve(ctx *kong.Context, trace *kong.Path) error {
	path, ok := ctx.FlagValue(trace.Flag).(configFlag)
	if !ok || path == "" {
		return nil
	}
	file, err := readConfig(string(path))
	if err != nil {
		return err
	}
	if err := file.check(ctx.Selected()); err != nil {
		return err
	}
	ctx.AddResolver(file)
	return nil
}

func readConfig(path string) (*configFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	defer f.Close()
	c := &configFile{path: path}
	// YAML contains JSON, so one decoder reads both.
	if err := yaml.NewDecoder(f).Decode(&c.values); err != nil && err != io.EOF {
		return nil, fmt.Errorf("config file %s is neither YAML nor JSON with one setting a line: %w", path, err)
	}
	return c, nil
}

// check refuses settings that the command does not have: a misspelt one must not pass for set.
func (c *configFile) check(command *kong.Node) error {
	var unknown []string
	for name := range c.values {
		if !slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == name && name != "config" }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("config file %s sets what %s does not have: %s (settings are named as the flags, without the dashes in front)",
		c.path, command.Name, strings.Join(unknown, ", "))
}

// Validate implements kong.Resolver. What there is to check is checked against the command, in check.
func (c *configFile) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver. Kong lets resolvers overrule the environment; here the environment ranks above the file.
func (c *configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Tag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	return c.values[flag.Name], nil
}

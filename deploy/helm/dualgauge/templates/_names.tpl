{{- define "dualgauge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "dualgauge.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 57 | trimSuffix "-" }}
{{- else if contains (include "dualgauge.name" .) .Release.Name }}
{{- .Release.Name | trunc 57 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "dualgauge.name" .) | trunc 57 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "dualgauge.selector" -}}
app.kubernetes.io/name: {{ include "dualgauge.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: proxy
{{- end }}

{{/* The Redis of the chart, where there is one. */}}
{{- define "dualgauge.redis" -}}
{{- printf "%s-redis" (include "dualgauge.fullname" . | trunc 57 | trimSuffix "-") }}
{{- end }}

{{- define "dualgauge.redisSelector" -}}
app.kubernetes.io/name: {{ include "dualgauge.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: redis
{{- end }}

{{- define "dualgauge.labels" -}}
{{ include "dualgauge.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "dualgauge.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* The ConfigMaps: what a restart reads, and the flags, which are read again while the pods run. */}}
{{- define "dualgauge.config" -}}
{{- default (include "dualgauge.fullname" .) .Values.config.existing }}
{{- end }}

{{- define "dualgauge.flags" -}}
{{- default (printf "%s-flags" (include "dualgauge.fullname" .)) .Values.config.existing }}
{{- end }}

{{/* Replicas that do not share their flags would each give a caller another answer. */}}
{{- define "dualgauge.validate" -}}
{{- $many := or (gt (int .Values.replicaCount) 1) .Values.autoscaling.enabled }}
{{- $store := include "dualgauge.store" . }}
{{- if and $many (not $store) }}
{{- fail "more than one replica requires a shared store: set store.url, store.existingSecret or redis.enabled, or replicaCount=1 without autoscaling" }}
{{- end }}
{{- if and .Values.state.existingClaim $store }}
{{- fail "state.existingClaim is for one replica without a store: unset it, or store.url, store.existingSecret and redis.enabled" }}
{{- end }}
{{- if and .Values.store.url .Values.store.existingSecret }}
{{- fail "the address of the store is set twice: unset one of store.url and store.existingSecret" }}
{{- end }}
{{- if and .Values.redis.enabled (or .Values.store.url .Values.store.existingSecret) }}
{{- fail "there are two stores: unset redis.enabled, or store.url and store.existingSecret" }}
{{- end }}
{{- if and .Values.redis.enabled (or .Values.store.passwordSecret .Values.store.tls.secret) }}
{{- fail "the Redis of the chart has neither a password nor TLS: unset redis.enabled, or store.passwordSecret and store.tls.secret" }}
{{- end }}
{{- if and .Values.store.tls.secret .Values.store.url (not (regexMatch "^(rediss|valkeys)://" .Values.store.url)) }}
{{- fail "store.tls.secret requires a store with TLS: start store.url with rediss://" }}
{{- end }}
{{- if and .Values.config.existingItems (not .Values.config.existing) }}
{{- fail "config.existingItems sets the paths of the keys of config.existing: set config.existing to the name of the ConfigMap" }}
{{- end }}
{{- if .Values.config.existingItems }}
{{- $paths := list }}
{{- range .Values.config.existingItems }}
{{- $paths = append $paths .path }}
{{- end }}
{{- if not (has "dualgauge.toml" $paths) }}
{{- fail "config.existingItems lacks the main file: only these keys are mounted, so add an item with the path dualgauge.toml" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether the replicas share a store; empty where they do not. */}}
{{- define "dualgauge.store" -}}
{{- if or .Values.store.url .Values.store.existingSecret .Values.redis.enabled }}true{{ end }}
{{- end }}

{{/* The port of the store: that of its address, or what is said where the address is in a Secret or names none. */}}
{{- define "dualgauge.storePort" -}}
{{- $said := regexFind ":[0-9]+(/|$)" (regexReplaceAll "^[a-z]+://([^@/]*@)?" .Values.store.url "") }}
{{- if $said }}
{{- trimAll ":/" $said }}
{{- else }}
{{- .Values.store.port }}
{{- end }}
{{- end }}

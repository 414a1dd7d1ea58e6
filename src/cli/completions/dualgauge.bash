# Completions of dualgauge for bash 4.4 or newer.
_dualgauge() {
    # readline also splits words at the `=` and `:` of COMP_WORDBREAKS: join those without a blank between them.
    local line="${COMP_LINE:0:COMP_POINT}" words=() word blanks i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        if ((i == COMP_CWORD)); then
            word="$2"
        fi
        blanks="${line%%[^[:blank:]]*}"
        line="${line#"$blanks"}"
        if [[ i -eq 0 || -n $blanks ]]; then
            words+=("$word")
        else
            words[-1]+="$word"
        fi
        line="${line#"$word"}"
    done
    local candidates
    mapfile -t candidates < <(
        _DUALGAUGE_COMPLETE=bash _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
            dualgauge -- "${words[@]}" 2>/dev/null
    )
    # readline replaces only the last part of the word.
    COMPREPLY=("${candidates[@]#"${words[-1]%"$2"}"}")
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _dualgauge dualgauge

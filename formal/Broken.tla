-------------------------------- MODULE Broken --------------------------------
(***************************************************************************)
(* One wrong rule each. TLC puts it in the place of the right one and must *)
(* find a circle that breaks the property named beside it: python -m formal *)
(* tries all of them in one go, by a module that protocol.py writes.       *)
(***************************************************************************)
EXTENDS Check

\* Electorate -> ZombiesNeverVote
EverybodyWhoSpoke == {voice \in Voices : \E number \in Rounds : said[voice][number] # Silent}
\* CountingRounds -> ConsensusIsTheHighest
LastRoundOnly == {round}
\* Highest -> ConsensusIsTheHighest
Lowest == CHOOSE vote \in Votes : \A other \in Votes : vote.falsehood <= other.falsehood
\* Highest -> TheEarliestHighestDecides
LatestHighest == CHOOSE vote \in Votes : \A other \in Votes :
                     \/ vote.falsehood > other.falsehood
                     \/ vote.falsehood = other.falsehood /\ vote.round >= other.round
\* StillThere -> NobodyRejoins
IsBackAfterARound(voice) == lost[voice] = 0 \/ lost[voice] < round
\* ChairOfRound -> TheChairMovesOn
AlwaysTheFirst(number) == IF number > 1 /\ circle.models[1] \in Active THEN circle.models[1] ELSE Nobody
\* ChairOfRound -> TheChairMovesOn
RotatesAmongSurvivors(number) == ActiveInOrder[((number - 1) % Len(ActiveInOrder)) + 1]
\* ChairOfRound -> TheChairMovesOn
HeldEvenWhenLost(number) == circle.models[((number - 1) % Len(circle.models)) + 1]
\* ChairIsOccupied -> ConsensusNeedsQuorum
IsAssignedAChair == chairs[round] # Nobody
\* SpansLineages -> ConsensusNeedsQuorum
AnyLineage(voices) == TRUE
\* SeesAllThatIsCritical -> ConsensusNeedsQuorum
SeesSomethingCritical(voices) == \E role \in CriticalRoles : BestShare(voices, role) > PresentAbove
\* CoversEnough -> ConsensusNeedsQuorum
CoversLess(voices, chaired) == Coverage(voices, chaired) >= circle.minCoverage - 150
\* Coverage -> ConsensusNeedsQuorum
AddsUpClones(voices, chaired) == \* as in the code of the source document
    Sum([voice \in voices |-> Sum([role \in Roles |-> Weight[role] * Share(voice, role)])])
\* CoversEnough -> RequirementsNeverRelax
RelaxesWithLosses(voices, chaired) ==
    Coverage(voices, chaired) >= circle.minCoverage - 150 * Cardinality({voice \in Voices : lost[voice] > 0})
\* IsViable -> RequirementsNeverRelax
AnyNumber(voices) == TRUE
\* HasConverged -> NoConvergenceBeforeTalking
ConvergedAtOnce == Apart < Square(Cardinality(Active) * circle.earlyStop)
\* EarnsExtraRound -> ExtraRoundsAreEarned
WheneverDivided == round < 4 /\ IsDivided
\* AllRoundsAreHeld -> ExtraRoundsAreEarned
OneRoundTooFew == round + 1 >= circle.maxRounds
\* WordsOfReserve -> EverybodyHasABaseline
SkipsItsBaseline(words, baseline, answer) == [words EXCEPT ![round] = Kept(answer)]
\* HelpfulGroups -> AbortsOnlyWhenItMust
SingleReserves == {group \in SUBSET (DOMAIN reserves) :
                       Cardinality(group) < 2 /\ MayGoOn(Active \cup {reserves[n] : n \in group})}
\* EndsAtOnce -> StrictLosesNobodyQuietly
GoesOnAnyway(failed) == FALSE
\* AfterLosing -> NothingSaidIsLost
Forgotten(words) == [number \in Rounds |-> Silent]
\* WithoutReserve -> EveryStepLeadsOn
AsksItAgain(place) == reserves
\* Abort -> EveryCircleEnds
WaitsForAQuorum == UNCHANGED vars

\* Whoever looks at groups of reserves is tried in circles that have a group.
CirclesWithTwoReserves ==
    {declared \in {Declared(voices, 2, Mixes[1], set[1], set[2], set[3], set[4], 0) :
                        voices \in 2..MostVoices, set \in Settings} : IsAccepted(declared)}

\* The safety formula of the source document, whose rule is also that the highest falsehood decides: every
\* member of some quorum must have ended at or above the consensus. No rule is broken, and it does not hold.
SafetyOfTheSource ==
    consensus.falsehood > 50 =>
        \E members \in SUBSET Survivors :
            /\ AreDiverse(members, TRUE)
            /\ \A voice \in members : said[voice][round] >= consensus.falsehood
=============================================================================
